"""The code that flatc generates for the user and the small record, called as its documentation shows.

It is what programs that use FlatBuffers, and those of zlmdb <= 26 among them, are made of. A vector of numbers is read
item by item, or at once into a NumPy array.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

from .records import Small, User

USER_FBS = Path(__file__).with_name("user.fbs")
"""What ``fbs(User)`` gives, for an interpreter that has another zlmdb."""


def generated(schema: str) -> dict[str, Any]:
    """What the Python module that flatc makes of *schema* defines. Raises ImportError without flatc."""
    program = shutil.which("flatc")
    if program is None:
        raise ImportError("flatc (Debian: flatbuffers-compiler)")
    runtime()
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "model.fbs").write_text(schema, encoding="utf-8")
        subprocess.run([program, "--python", "--gen-onefile", "model.fbs"], cwd=directory, check=True)
        return runpy.run_path(str(Path(directory, "model_generated.py")))


def runtime() -> None:
    """Make ``import flatbuffers`` find the copy that zlmdb 26 carries where the package itself is not installed."""
    try:
        import flatbuffers  # noqa: F401
    except ImportError:
        import zlmdb.flatbuffers

        sys.modules["flatbuffers"] = zlmdb.flatbuffers


def read_user(one: Any) -> User:
    """All fields, vectors item by item."""
    return _user(one, bytes([one.Uuid(j) for j in range(one.UuidLength())]),
                 [one.Friends(j) for j in range(one.FriendsLength())])  # fmt: skip


def read_user_by_numpy(one: Any) -> User:
    """All fields, vectors of numbers through NumPy."""
    return _user(one, one.UuidAsNumpy().tobytes(), one.FriendsAsNumpy().tolist())


def _user(one: Any, uuid: bytes, friends: list[int]) -> User:
    ratings: dict[str, float] = {}
    for j in range(one.RatingsLength()):
        rating = one.Ratings(j)
        ratings[rating.Key().decode()] = rating.Value()
    day = one.Birthday()
    return User(
        one.Oid(), one.Name().decode(), one.Authid().decode(), UUID(bytes=uuid), one.Email().decode(),
        date(day.Year(), day.Month(), day.Day()), one.IsFriendly(),
        [one.Tags(j).decode() for j in range(one.TagsLength())], ratings, friends, one.ReferredBy(),
    )  # fmt: skip


def read_small(one: Any) -> Small:
    """All fields."""
    return Small(one.Id(), one.Count(), one.Price(), one.Kind(), one.Weight(), one.Name().decode(), one.City().decode())


class UserCode:
    """``build`` and ``cast`` for a map of zlmdb 26 from what flatc generated."""

    def __init__(self, numpy: bool) -> None:
        """*numpy*: vectors of numbers are read through NumPy, which the documentation mentions as the faster way."""
        self.read = read_user_by_numpy if numpy else read_user
        self.space = generated(USER_FBS.read_text(encoding="utf-8"))
        self.root = self.space["User"].GetRootAs

    def cast(self, data: Any) -> User:
        """The whole object."""
        return self.read(self.root(data, 0))

    def build(self, user: User, builder: Any) -> int:
        """The offset of the table."""
        space = self.space
        ratings = []
        for name, rating in user.ratings.items():
            key = builder.CreateString(name)
            space["UserRatingsEntryStart"](builder)
            space["UserRatingsEntryAddKey"](builder, key)
            space["UserRatingsEntryAddValue"](builder, rating)
            ratings.append(space["UserRatingsEntryEnd"](builder))
        all_ratings = self.offsets(builder, "UserStartRatingsVector", ratings)
        tags = self.offsets(builder, "UserStartTagsVector", [builder.CreateString(tag) for tag in user.tags])
        space["UserStartFriendsVector"](builder, len(user.friends))
        for friend in reversed(user.friends):
            builder.PrependInt64(friend)
        friends = builder.EndVector()
        name, authid = builder.CreateString(user.name), builder.CreateString(user.authid)
        email, uuid = builder.CreateString(user.email), builder.CreateByteVector(user.uuid.bytes)
        day = user.birthday
        space["UserStart"](builder)
        space["UserAddOid"](builder, user.oid)
        space["UserAddName"](builder, name)
        space["UserAddAuthid"](builder, authid)
        space["UserAddUuid"](builder, uuid)
        space["UserAddEmail"](builder, email)
        space["UserAddBirthday"](builder, space["CreateDate"](builder, day.year, day.month, day.day))
        space["UserAddIsFriendly"](builder, user.is_friendly)
        space["UserAddTags"](builder, tags)
        space["UserAddRatings"](builder, all_ratings)
        space["UserAddFriends"](builder, friends)
        space["UserAddReferredBy"](builder, user.referred_by)
        return int(space["UserEnd"](builder))

    def offsets(self, builder: Any, start: str, found: list[int]) -> int:
        """A vector of what is at the offsets *found*."""
        self.space[start](builder, len(found))
        for offset in reversed(found):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())
