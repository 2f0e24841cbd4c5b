"""The workloads, one file each; the larger variants of one are classes in its file."""

from __future__ import annotations

from typing import Union

from .base import Step as Step
from .base import Workload as Workload
from .caching import Caching
from .db_benchmark import DbBenchmark, DbBenchmark16, DbBenchmarkDurable
from .fill_read import FillRead, FillReadPublished
from .filtering import Filtering
from .go_persist import GoPersist, GoPersistCommit, GoPersistFull, GoPersistStrings
from .growth import Growth
from .inside import Inside as Inside
from .layer import Layer
from .questions import Questions
from .serializers import Serializers
from .transactions import Transactions, TransactionsDurable
from .zds import Zds
from .zippondb import Zippondb
from .zippondb_links import ZippondbLinks

WORKLOADS: dict[str, Workload] = {
    workload.name: workload()
    for workload in (
        FillRead, FillReadPublished, Zds, Zippondb, DbBenchmark, DbBenchmark16, DbBenchmarkDurable,
        GoPersist, GoPersistStrings, GoPersistCommit, GoPersistFull, Growth,
        Transactions, TransactionsDurable,
    )
}  # fmt: skip

INSIDE: dict[str, Inside] = {
    workload.name: workload
    for workload in (Serializers(), Layer(), Caching(), Filtering(), Questions(), ZippondbLinks())
}

ALL: dict[str, Union[Workload, Inside]] = {**INSIDE, **WORKLOADS}
