"""The former name of a field, as a marker in its annotation."""

from __future__ import annotations

from ..namedtuples import NamedTuple


class Was(NamedTuple):
    """The former name of a field: ``email: Annotated[str, Was("mail")]``.

    The first program that opens the file to write converts the records, under the write lock, and from then on the file
    has the new name. A program that opens the file read-only reads the old name as the new one, and changes nothing. A
    field that was renamed twice has two markers. They may stay forever, and must stay as long as there are files with
    the old name.
    """

    name: str
