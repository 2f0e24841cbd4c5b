"""Hugging Face datasets: an Arrow table on disk; it has rows by position, and no look-up by id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Cannot, Open, Store

NEEDS = {"datasets": "datasets"}
WORKLOADS = ("zds",)


class HfDatasets(Store):
    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        import datasets

        super().__init__(path, shape, durability)
        datasets.disable_progress_bars()
        self.datasets = datasets
        self.note = "has no keys: what is looked up is asked for by its position, as in the published benchmark"
        self.place = path / "dataset"
        self.data: Any = datasets.load_from_disk(str(self.place)) if self.place.exists() else None

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        if self.place.exists():
            raise Cannot("a data set is written as a whole")
        self.datasets.Dataset.from_list([record for _, record in pairs]).save_to_disk(str(self.place))
        self.data = self.datasets.load_from_disk(str(self.place))

    def put(self, key: Any, record: Any) -> None:
        raise Cannot("a data set is written as a whole")

    def scan(self) -> Iterator[Any]:
        return iter(self.data)

    def get_many(self, keys: list[Any]) -> list[Any]:
        # As the published benchmark does: the position is known, here from the number that ends the id.
        return [self.data[int(key.rpartition("_")[2])] for key in keys]

    def delete_many(self, keys: list[Any]) -> None:
        raise Cannot("a data set is written as a whole")

    def count(self) -> int:
        return len(self.data)


VARIANTS: dict[str, Open] = {"Hugging Face datasets": HfDatasets}
