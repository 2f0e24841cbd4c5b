"""Reads the records of a catalogue, and refuses damaged ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Optional

from .. import errors
from ..values.base import is_a
from ..values.description import checked_description
from .slots import Slot

if TYPE_CHECKING:
    from uuid import UUID


_TEXTS = ("name", "description", "key", "value", "model", "unsettled", "key_field")


def slot_of(name: str, record: dict[str, Any], records: tuple[Optional[bytes], ...] = ()) -> Slot:
    """The slot that a catalogue *record* describes, read from *records*. Raises `DecodeError` if it is damaged."""
    try:
        return _slot_of(name, record, records)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise errors.DecodeError(f"the catalogue's record of table {name!r} is damaged: {error}") from error


def _uuid(text: str) -> UUID:
    from uuid import UUID  # late: it takes a millisecond to import

    return UUID(text)


def _slot_of(name: str, record: dict[str, Any], records: tuple[Optional[bytes], ...]) -> Slot:
    uuid = record.get("uuid")
    texts = [(member, record.get(member)) for member in _TEXTS]
    for index, definition in record.get("indexes", {}).items():
        texts += ("index", index), ("table", definition.get("table"))  # AttributeError for what is no definition
        if "link" in definition and not is_a(definition["link"]["to"], str):
            raise TypeError(f"the table that its link {index} leads to is not text: {definition['link']!r}")
    history, fields, was = record.get("history", ()), record.get("fields"), record.get("was", ())
    _check_texts([*texts, *zip(("history",) * len(history), history), *zip(("was",) * len(was), was)])
    referred: Any = record.get("referred", ())
    if referred:
        referred = [[str(table), str(link)] for table, link in referred]
    return Slot(
        name=name,
        number=int(record.get("slot", 0)),
        uuid=None if uuid is None else _uuid(uuid),
        class_name=str(record.get("name", "")),
        description=record.get("description"),
        key=record.get("key"),
        value=record.get("value"),
        model=record.get("model"),
        indexes=dict(record.get("indexes", {})),
        attached=dict(record.get("attached", {})),
        records=records,
        fields=None if fields is None else checked_description(fields),
        history=history,
        unsettled=record.get("unsettled"),
        key_field=record.get("key_field"),
        keyed=record.get("keyed") is True or None,
        was=was,
        referred=referred,
        feed=None if record.get("feed") is None else checked_feed(record["feed"]),
        building=None if record.get("building") is None else _checked_building(record["building"]),
    )


def checked_migration(record: Any) -> dict[str, Any]:
    """*record*, if it is a valid record of a step, with version and name. Raises `DecodeError`."""
    found: dict[str, Any] = record if is_a(record, dict) else {}
    version = found.get("version")
    if type(version) is not int or not 0 < version < 1 << 64 or not is_a(found.get("name"), str):
        raise errors.DecodeError(f"the record of a migration is damaged: {record!r}")
    return found


def checked_feed(feed: Any) -> dict[str, Any]:
    """*feed*, if it is a valid record of a change feed. Raises TypeError."""
    if not is_a(feed, dict) or type(feed.get("after")) is not int or feed["after"] < 0:
        raise TypeError(f"its feed is none: {feed!r}")
    return feed


def _checked_building(building: Any) -> dict[str, dict[str, Any]]:
    """*building*, if it says of indexes how far they are built. Raises TypeError."""
    for name, one in building.items():
        if not (is_a(name, str) and is_a(one["after"], bytes) and type(one["records"]) is int):
            raise TypeError(f"how far an index is built is not said: {one!r}")
    return dict(building)


def _check_texts(members: Iterable[tuple[str, Any]]) -> None:
    """Raise TypeError unless each is text or None. In CBOR one bit makes bytes of a text, and they name no type."""
    for member, value in members:
        if value is not None and not isinstance(value, str):
            raise TypeError(f"its {member} is not text: {value!r}")
