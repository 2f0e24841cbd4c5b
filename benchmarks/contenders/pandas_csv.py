"""pandas and a CSV file: written and read as a whole; lists and dicts in a cell as JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Cannot, Open, Store

NEEDS = {"pandas": "pandas"}
WORKLOADS = ("zds",)


class PandasCsv(Store):
    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        import pandas

        super().__init__(path, shape, durability)
        self.pandas = pandas
        path.mkdir(exist_ok=True)
        self.file = path / "records.csv"
        self.nested = [name for name, kind in shape.columns.items() if kind == "json"]
        self.frame: Any = self._load() if self.file.exists() else None

    def _load(self) -> Any:
        return self.pandas.read_csv(self.file, converters={name: json.loads for name in self.nested})

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        if self.file.exists():
            raise Cannot("a CSV file is written as a whole")
        frame = self.pandas.DataFrame([record for _, record in pairs])
        written = frame.copy(deep=False)
        for name in self.nested:
            written[name] = [json.dumps(value) for value in frame[name]]
        written.to_csv(self.file, index=False)
        self.frame = frame

    def put(self, key: Any, record: Any) -> None:
        raise Cannot("a CSV file is written as a whole")

    def _records(self, frame: Any) -> Iterable[Any]:
        return frame.to_dict("records")  # type: ignore[no-any-return]

    def scan(self) -> Iterator[Any]:
        return iter(self._records(self.frame))

    def get_many(self, keys: list[Any]) -> list[Any]:
        found = {record["id"]: record for record in self._records(self.frame[self.frame["id"].isin(keys)])}
        return [found[key] for key in keys]

    def delete_many(self, keys: list[Any]) -> None:
        raise Cannot("a CSV file is written as a whole")

    def count(self) -> int:
        return len(self.frame)


VARIANTS: dict[str, Open] = {"pandas CSV": PandasCsv}
