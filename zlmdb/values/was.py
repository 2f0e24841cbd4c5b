"""The former name of a field, said in its annotation."""

from __future__ import annotations

from typing import NamedTuple


class Was(NamedTuple):
    """The name that a field had before: ``email: Annotated[str, Was("mail")]``.

    A program that opens the file to write stores the records anew, under the write lock, and the file has the new
    name from then on. One that opens it read-only reads the old name as the new one, and changes nothing. A field that
    was renamed twice has two of them. They may stay for ever, and must stay as long as there are files with the name.
    """

    name: str
