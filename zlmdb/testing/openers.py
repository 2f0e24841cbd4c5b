"""Databases that are opened for a test and closed after it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, Optional, TypeVar

from .. import errors
from ..database.database import Database
from ..database.opening import open as open_database
from ..protocols import Protocol
from ..schema.schema import Schema

S = TypeVar("S", bound=Schema)
Place = Literal["memory", "file"]


class Opener(Protocol):
    """What the fixtures ``zlmdb_memory`` and ``zlmdb_file`` are: ``zlmdb_memory(Store)`` opens a database.

    *options* are those of `zlmdb.open`. The test may close the database; otherwise the fixture does.
    """

    def __call__(self, schema: type[S], /, **options: Any) -> Database[S]:
        """The opened database."""
        ...


@contextmanager
def opener(path: Optional[Path]) -> Generator[Opener, None, None]:
    """A block with a function that opens databases, at *path* or in memory, which are closed at its end."""
    usual: dict[str, Any] = {} if path is None else {"durability": "none"}  # no test cuts the power
    with ExitStack() as closing:

        def open_one(schema: type[S], /, **options: Any) -> Database[S]:
            db = open_database(path, schema, **{**usual, **options})
            closing.callback(_close, db)
            return db

        yield open_one


def _close(db: Database[Any]) -> None:
    # A test that fails inside a transaction keeps it open by its traceback: its own error is the one to see.
    with suppress(errors.DatabaseInUse, errors.DatabaseClosed):
        db.close()


def database_fixture(schema: type[Schema], *places: Place, **options: Any) -> Any:
    """A pytest fixture that is an open, empty database of *schema*: ``db = database_fixture(Store)``.

    *places*: ``"memory"`` (the default) or ``"file"``, in the ``tmp_path`` of the test; with both, each test runs
    twice. *options* are those of `zlmdb.open`.
    """
    import pytest  # late: the failures of this package do not need it

    chosen: Sequence[str] = places or ("memory",)
    for place in chosen:
        if place not in ("memory", "file"):
            raise ValueError(f"{place!r}: expected 'memory' or 'file'")

    @pytest.fixture(params=chosen if len(chosen) > 1 else None)
    def database(request: pytest.FixtureRequest) -> Iterator[Database[Any]]:
        in_file = getattr(request, "param", chosen[0]) == "file"
        path = request.getfixturevalue("tmp_path") / "zlmdb" if in_file else None
        with opener(path) as opened:
            yield opened(schema, **options)

    return database
