"""Tables attached by ``@table``, as a program of the predecessor declares them: `attach.py` runs them on both."""

from __future__ import annotations

from typing import Any

import zlmdb

import catalogue


@zlmdb.table("e7a9f0c4-0000-4000-8000-000000000001", marshal=lambda user: user, parse=lambda data: data)
class Users(zlmdb.MapStringJson):
    # Assigned: Python 3.13 takes the indentation out of a docstring that is written as one.
    __doc__ = "\n    Users table.\n\n    With a second paragraph,\n        indented.\n    "


@zlmdb.table("e7a9f0c4-0000-4000-8000-000000000002")
class UsersByNumber(zlmdb.MapOidString):
    pass


@zlmdb.table("e7a9f0c4-0000-4000-8000-000000000003", compress=1)
class Notes(zlmdb.MapUuidString):
    __doc__ = "  Notes, compressed \u00e9.  "


@zlmdb.table("e7a9f0c4-0000-4000-8000-000000000004", build=catalogue.build_row, cast=catalogue.cast_row)
class Rows(zlmdb.MapOidFlatBuffers):
    """Rows."""


@zlmdb.table("e7a9f0c4-0000-4000-8000-000000000005", marshal=list, parse=tuple, compress=1)
class Points(zlmdb.MapUuidTimestampCbor):
    ""


@zlmdb.table("e7a9f0c4-0000-4000-8000-000000000006")
class Members(zlmdb.MapUuidUuidSet):
    "Members"


@zlmdb.table("e7a9f0c4-0000-4000-8000-000000000007")
class Late(zlmdb.MapSlotUuidUuid):
    "The table that makes a file one of the predecessor's."


TABLES: dict[str, Any] = {table.__name__: table for table in (Users, UsersByNumber, Notes, Rows, Points, Members, Late)}
