"""The two layouts of a database file: their reserved names, and the recognition of a file's layout.

*tables*: one LMDB named sub-database for each table and index, and a catalogue. *classic*: everything in the main
database, with the slot number before each key. ``docs/format.rst`` describes both byte by byte. A third value, *raw*,
is for files of other programs: the tables are their sub-databases, and nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Literal, Optional, TypeVar

from .. import errors
from ..engines import Engine, Environment, Handle, Transaction
from ..namedtuples import NamedTuple
from ..protocols import Protocol
from ..shown import shortened

Layout = Literal["tables", "classic", "raw"]

FORMAT = 1
"""The version of the catalogue that this code writes; files with another one are refused."""

CATALOGUE = b"__zlmdb__"
SLOTS = b"__slots__"
MAGIC_KEY = b"zlmdb"

GUARD = (b"\x00\x00\xff\xff", b"\xffzlmdb tables layout")
"""A record of the main database that zlmdb <= 26 takes for metadata and fails on, before it could write there."""

DEFINITIONS_KEY = b"\x00\x00z"
"""Key of the record by which a classic file is known to be ours, see `definitions` for others.

zlmdb <= 26 ignores records of slot 0 with keys shorter than 4 bytes.
"""

NO_DEFINITIONS = b"\xa0"
"""What it contains: a CBOR map without members."""

MIGRATIONS_KEY = b"\x00\x00m"
"""Key of the list of migrations in a classic file; as short as `DEFINITIONS_KEY`, for the same reason."""


class _Coded(Protocol):
    def classic(self) -> Any: ...


C = TypeVar("C", bound=_Coded)


class Traits(NamedTuple):
    """The differences between the layouts, for code that need not know which one a file has.

    *spaces* exist in every file, *slots* is the space of records under slots given by hand. *by_name*: tables have
    keyspaces of their own, and the main one contains only their names. *records_attached*: the file records which
    indexes were attached, so that a writer without one of them is refused.
    """

    spaces: tuple[bytes, ...]
    slots: Optional[bytes]
    by_name: bool
    records_attached: bool

    def codec(self, codec: C) -> C:
        """The codec that writes, in a file of the layout, the keys or values of *codec*."""
        if self.by_name:
            return codec
        return codec.classic()


TRAITS: dict[Layout, Traits] = {
    "tables": Traits((CATALOGUE, SLOTS), SLOTS, by_name=True, records_attached=True),
    "classic": Traits((), None, by_name=False, records_attached=False),
    "raw": Traits((), None, by_name=True, records_attached=False),
}


def recognise(engine: Engine, env: Environment, *, slots_expected: bool) -> Optional[Layout]:
    """The layout of the file open in *env*; None if it is empty.

    *slots_expected*: the caller wants a classic database, so records without any metadata count as one. Raises
    `InvalidDatabase` for a file of another program or of a newer zlmdb.
    """
    path, catalogue = engine.path, engine.open_existing(env, CATALOGUE)
    if catalogue is not None:
        _check_magic(env, catalogue, path)
        return "tables"
    if env.stat()["entries"] == 0:
        return None
    with _snapshot(env) as txn:
        if _is_classic(engine, env, txn, slots_expected):
            return "classic"
        raise _foreign(path, txn)


def refuse_foreign(engine: Engine, env: Environment, *, slots_expected: bool) -> None:
    """As `recognise`, for a file of another program alone, and without the write transaction that handles need."""
    with _snapshot(env) as txn:
        empty = not txn.stat()["entries"]
        if empty or txn.get(CATALOGUE) is not None or txn.get(CATALOGUE + b"\0") is not None:  # the latter in LMDB 1.0
            return
        if not _is_classic(engine, env, txn, slots_expected):
            raise _foreign(engine.path, txn)


def _foreign(path: Optional[str], txn: Transaction) -> errors.InvalidDatabase:
    found = [bytes(key) for key, _ in zip(txn.cursor().iternext(True, False), range(3))]
    return errors.InvalidDatabase(
        f"{path!r} is an LMDB file, but not one of zlmdb: its main database begins with the keys {found}. "
        f"To use its sub-databases as tables, open it with layout='raw'; if zlmdb <= 26 wrote it with hand-given slots "
        f"only, with layout='classic'",
        path=path,
    )


@contextmanager
def _snapshot(env: Environment) -> Generator[Transaction, None, None]:
    txn = env.begin()
    try:
        yield txn
    finally:
        txn.abort()


def refuse_ours(engine: Engine, env: Environment) -> None:
    """Raise `InvalidDatabase` for a file of zlmdb."""
    ours = engine.open_existing(env, CATALOGUE) is not None
    if not ours:
        with _snapshot(env) as txn:
            ours = _is_classic(engine, env, txn, False)
    if ours:
        raise errors.InvalidDatabase(
            f"{engine.path!r} is a file of zlmdb, and layout='raw' is for files of other programs: leave it out",
            path=engine.path,
        )


def _check_magic(env: Environment, catalogue: Handle, path: Optional[str]) -> None:
    with _snapshot(env) as txn:
        magic = txn.get(MAGIC_KEY, None, catalogue)
    if magic is None:
        raise errors.InvalidDatabase(f"{path!r} has a sub-database {CATALOGUE!r} that zlmdb did not create", path=path)
    found = decode(magic).get("format")
    if found != FORMAT:
        raise errors.InvalidDatabase(
            f"{path!r} has catalogue format {found}, this zlmdb reads format {FORMAT}: use a newer zlmdb", path=path
        )


def _is_classic(engine: Engine, env: Environment, txn: Transaction, slots_expected: bool) -> bool:
    cursor = txn.cursor()
    if not cursor.last() or len(cursor.key()) < 2:
        return False
    if engine.holds_spaces(env, txn):
        return False
    if txn.get(DEFINITIONS_KEY) is not None:
        return True
    records = list(slot_records(txn))
    return all("oid" in record and "slot" in record for _, record in records) and (bool(records) or slots_expected)


def foreign_key(txn: Transaction) -> Optional[bytes]:
    """In the tables layout: a key of the main database that is neither the name of a sub-database nor zlmdb's guard."""
    own = txn.get(CATALOGUE)
    # LMDB 1.0 ends the names of sub-databases with a NUL. What it stores for each has one size.
    size = len(own if own is not None else txn.get(CATALOGUE + b"\0", b""))
    for key, data in txn.cursor().iternext():
        if len(data) != size and bytes(key) != GUARD[0]:
            return bytes(key)
    return None


def slot_records(txn: Transaction) -> Iterator[tuple[int, dict[str, Any]]]:
    """The metadata records of a classic file: slot number and decoded record. Invalid ones read as empty."""
    cursor = txn.cursor()
    if cursor.set_range(b"\x00\x00\x00\x00"):
        for key, data in cursor.iternext():
            if key[:2] != b"\x00\x00":
                return
            if len(key) == 4:
                yield int.from_bytes(key[2:], "big"), metadata(data)


def metadata(data: bytes) -> dict[str, Any]:
    """The decoded metadata record *data*; one that is not valid reads as empty."""
    try:
        found: dict[str, Any] = decode(data)
    except errors.DecodeError:
        return {}
    return found


def encode(record: dict[str, Any]) -> bytes:
    """A catalogue record as bytes: CBOR, members in the order given."""
    import cbor2

    return cbor2.dumps(record)


def decode(data: bytes) -> Any:
    """A catalogue record from its bytes. Raises `DecodeError` if they are not a CBOR map."""
    import cbor2

    try:
        record: Any = cbor2.loads(bytes(data))
    except Exception as error:
        raise errors.DecodeError(f"a catalogue record is not CBOR: {bytes(data)[:40]!r}") from error
    if not isinstance(record, dict):
        raise errors.DecodeError(f"a catalogue record is not a map: {bytes(data)[:40]!r}")
    return record  # pyright: ignore[reportUnknownVariableType]  # every member is checked where it is used


def shown_space(name: Optional[bytes]) -> str:
    """What the space *name* holds, in words."""
    kind, _, rest = (name or b"").decode(errors="backslashreplace").partition(":")
    return f"the index {rest.replace(':', '.')!r}" if kind == "i" else f"the table {rest or kind!r}"


def refuse_long(name: bytes, limit: int) -> None:
    """Raise `EncodeError` where *name*, of a new space, has more bytes than *limit*, which the engine has for it."""
    if len(name) <= limit:
        return
    kind, _, rest = name.decode().partition(":")
    one, size, most = ("name", len(name) - 2, limit - 2)
    if kind == "i":
        one, size, most = ("names of a table and its index", size - 1, most - 1)
    raise errors.EncodeError(
        f"{one} {shortened(rest)}: {size} bytes in UTF-8, and at most {most} are possible here: choose a shorter one",
        table=rest.partition(":")[0], size=size, limit=most,
    )  # fmt: skip
