"""Compares the recorded shape of a table's records with the shape that a program declares.

Both are descriptions of `values.fields`. Allowed without a declaration: new fields with a default, a wider union, more
members of an Enum. Allowed with a declaration: a former name (`Was`). Everything else needs a migration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional

from ..values.description import VALUES, Description, Type, number_where_absent, spelled

if TYPE_CHECKING:
    from ..values.fields import Fields

Renames = dict[int, dict[str, str]]
"""For each model of the file, by its number there, the new names of fields by the old ones."""


class Relation:
    """The differences between the *stored* description and the *declared* one.

    *problems*: what cannot be read, in words. *lacking*: recorded fields that the class does not have. *added*: fields
    that the file does not have; *needing*: those of them without a default. *renames*: declared renames; *rewritten*
    says whether records contain the names. *wider*: types that accept more than the recorded ones. *redefaulted*:
    fields that older records lack, and whose default is another one now. *description* is what the file must record
    from then on.
    """

    def __init__(self, stored: Description, declared: Fields) -> None:
        self.problems: list[str] = []
        self.lacking: list[str] = []
        self.added: list[str] = []
        self.needing: list[str] = []
        self.wider: list[str] = []
        self.redefaulted: list[str] = []
        self.renames: Renames = {}
        self.rewritten = False
        self._old: list[dict[str, Any]] = stored["models"]
        self._new: list[dict[str, Any]] = [dict(model) for model in declared.description["models"]]
        self._former = declared.former
        self._ids = any(model["kind"] in ("ids", "struct") for model in self._new)
        self._met: set[tuple[int, int]] = set()
        self._type(stored["type"], declared.description["type"], "")
        self.description = {"type": declared.description["type"], "models": self._new}

    @property
    def readable(self) -> bool:
        """Whether the class reads every stored value into its field, apart from declared renames."""
        return not self.problems and not (self.lacking and self.added)

    @property
    def same(self) -> bool:
        """Whether nothing has changed."""
        return not (self.problems or self.lacking or self.added or self.wider or self.redefaulted or self.renames)

    # -- types ----------------------------------------------------------------------------------------------------

    def _type(self, old: Type, new: Type, path: str) -> None:
        """Compare the two types at *path*."""
        if not self._fits(old, new, path):
            self.problems.append(
                f"{path or 'the value'} is {spelled(old, self._old)} in the file and {spelled(new, self._new)} in the "
                f"class"
            )

    def _fits(self, old: Type, new: Type, path: str) -> bool:
        """Whether *new* reads a value stored as *old* unchanged; models inside are compared in turn."""
        if isinstance(old, list) and isinstance(new, list) and old[0] == new[0] == "model":
            self._model(old[1], new[1], path)
            return True
        if _is_union(new) or _is_union(old):
            return self._union(_members(old), _members(new), path)
        if isinstance(new, list) and new[0] in VALUES:
            return self._one_of(old, new, path)
        if old[0] == "one of" and new[0] == "stored as" and _lists_values(new):
            self.wider.append(path)  # zlmdb recorded no width of an enum once
            return self._one_of(old, [old[0], *new[1][1:]], path)
        if isinstance(old, str) or isinstance(new, str) or old[0] != new[0] or len(old) != len(new):
            return old == new
        if new[0] == "stored as" and _lists_values(new) and old[2] == new[2]:
            # Other writers of FlatBuffers leave out a number that is the default.
            absent = {number_where_absent(kind[1:], kind[0] == "flags") for kind in (old[1], new[1])}
            return len(absent) == 1 and self._one_of(old[1], new[1], path, same_width=True)
        return all([self._fits(one, other, f"{path}[]") for one, other in zip(old[1:], new[1:])])

    def _one_of(self, old: Type, new: list[Any], path: str, same_width: bool = False) -> bool:
        if isinstance(old, str) or old[0] not in ("one of", new[0]):
            return False
        if not all(value in new[1:] for value in old[1:]):
            return False
        if len(new) > len(old):
            if self._ids and not same_width and not all(isinstance(value, str) for value in new[1:]):
                return False  # integers of FlatBuffers have a width
            self.wider.append(path)
        return True

    def _union(self, old: Sequence[Type], new: Sequence[Type], path: str) -> bool:
        left = list(new)
        for member in old:
            found = next((one for one in left if self._may_fit(member, one)), None)
            if found is None or not self._fits(member, found, path):
                return False
            left.remove(found)
        if left:
            if self._ids and left != ["none"]:
                return False
            self.wider.append(path)
        return True

    @staticmethod
    def _may_fit(old: Type, new: Type) -> bool:
        """Whether two members of unions must be compared: both are models, or equal."""
        if isinstance(old, str) or isinstance(new, str):
            return old == new
        return bool(old[0] == new[0] or (old[0] == "one of" and _lists_values(new)))

    # -- models ---------------------------------------------------------------------------------------------------

    def _model(self, old: int, new: int, path: str) -> None:
        """Compare two models, once."""
        if (old, new) in self._met:
            return
        self._met.add((old, new))
        stored, declared = self._old[old], self._new[new]
        if (stored["kind"], stored.get("tag")) != (declared["kind"], declared.get("tag")):
            self.problems.append(f"{path or 'the value'} is stored in another way than before")
            return
        fields = [dict(field) for field in declared["fields"]]
        declared["fields"] = fields
        matched = self._match(stored, fields, self._former[new], old)
        for position, field in enumerate(fields):
            self._field(matched.get(field["name"]), field, position, stored, _at(path, field["name"]))
        taken = [field["name"] for field in matched.values()]
        left = [field for field in stored["fields"] if field["name"] not in taken]
        for field in left:
            self.lacking.append(_at(path, field["name"]))
        if (left or len(matched) < len(fields)) and declared["kind"] == "struct":
            self.problems.append(f"{path or 'the value'} is a struct, which can never change")
        elif left and declared["kind"] == "list":
            self.problems.append(f"{path or 'the value'} has more parts in the file than the class has fields")

    def _match(
        self, stored: Mapping[str, Any], fields: list[dict[str, Any]], former: Mapping[str, tuple[str, ...]],
        number: int,
    ) -> dict[str, dict[str, Any]]:  # fmt: skip
        """The recorded field of each declared one, found by its current or former name."""
        known = {field["name"]: field for field in stored["fields"]}
        names = {field["name"] for field in fields}
        matched: dict[str, dict[str, Any]] = {}
        for field in fields:
            name = field["name"]
            old = next((one for one in former.get(name, ()) if one in known and one not in names), None)
            if name in known:
                matched[name] = known[name]
            elif old is not None:
                matched[name] = known[old]
                self.renames.setdefault(number, {})[old] = name
                self.rewritten = self.rewritten or stored["kind"] == "map"
        return matched

    def _field(
        self, old: Optional[dict[str, Any]], field: dict[str, Any], position: int, stored: Mapping[str, Any], path: str
    ) -> None:  # fmt: skip
        """Compare a declared field, and its *position*, with the recorded one, if it exists."""
        free = "default" in field or "made" in field or "absent" in field
        if old is None:
            self.added.append(path)
            if not free:
                self.needing.append(path)
                self.problems.append(f"{path} is new and has no default, which the records in the file would need")
            self._check_none(field, path)
            field["absent"] = True
            self._check_place(field, stored, path)
            return
        if old.get("absent"):
            field["absent"] = True
            if not free:
                self.problems.append(f"{path} has no default any more, and older records in the file lack the field")
            elif [old.get("default"), old.get("made")] != [field.get("default"), field.get("made")]:
                self.redefaulted.append(path)
            if "none" not in _members(old["type"]):
                self._check_none(field, path)
        if field.get("id") != old.get("id"):
            self.problems.append(
                f"{path} has the number {field.get('id')} in the class and {old.get('id')} in the file: FlatBuffers "
                f"has fields by number; new ones come last, or all have an Id"
            )
        if stored["kind"] in ("list", "struct"):
            before = stored["fields"].index(old)  # such formats find fields by their position
            if before != position:
                self.problems.append(f"{path} is field {position + 1} of the class and field {before + 1} in the file")
        self._type(old["type"], field["type"], path)

    def _check_none(self, field: Mapping[str, Any], path: str) -> None:
        """FlatBuffers store None as they store nothing: no other default can be read for a field that records lack."""
        if self._ids and "none" in _members(field["type"]) and (field.get("default") is not None or "made" in field):
            self.problems.append(
                f"{path} has a default that is not None, which records in the file that lack the field would not get: "
                f"FlatBuffers leave out None, and an Optional that is not there is read as None"
            )

    def _check_place(self, field: Mapping[str, Any], stored: Mapping[str, Any], path: str) -> None:
        """Note a problem if a new field has the number of a stored one."""
        taken = [one["name"] for one in stored["fields"] if "id" in field and one.get("id") == field["id"]]
        if taken:
            self.problems.append(f"{path} has the number {field['id']}, which is that of {taken[0]} in the file")


def affected(definitions: Mapping[str, Mapping[str, Any]], paths: Sequence[str]) -> list[str]:
    """The indexes whose keys may depend on a field of one of the *paths*; those of a function may on any field."""
    names = {path.rpartition(".")[2] for path in paths}
    return [
        index
        for index, definition in definitions.items()
        if names and ("fields" not in definition or not names.isdisjoint(re.findall(r"\w+", repr(definition))))
    ]


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_union(kind: Type) -> bool:
    return isinstance(kind, list) and kind[0] == "union"


def _members(kind: Type) -> list[Type]:
    return [*kind[1:]] if _is_union(kind) else [kind]


def may_read(stored: Type, wanted: Type) -> bool:
    """Whether values of the type *stored* can be read as *wanted*, as far as that is known. Neither has models."""
    if _is_open(stored) or _is_open(wanted):
        heads = [kind if isinstance(kind, str) else kind[0] for kind in (stored, wanted)]
        return heads[0] == heads[1] or not {"any", "object", "model", "union"}.isdisjoint(heads)
    from ..values.fields import Fields  # late: few types change

    return not Relation({"type": stored, "models": []}, Fields({"type": wanted, "models": []}, [])).problems


def _lists_values(kind: Type) -> bool:
    """Whether it is one of some values, perhaps with a width."""
    return kind[0] in VALUES or (kind[0] == "stored as" and kind[1][0] in VALUES)


def _is_open(kind: Type) -> bool:
    """Whether something about the type is not known."""
    if isinstance(kind, str):
        return kind in ("any", "object")
    return kind[0] == "model" or (kind[0] not in VALUES and any([_is_open(part) for part in kind[1:]]))


def with_unknown_past(description: Description) -> Description:
    """*description* for records that may have been stored before a class had all of its fields."""
    models = [dict(model, fields=[_perhaps_absent(field) for field in model["fields"]]) for model in
              description["models"]]  # fmt: skip
    return {**description, "models": models}


def _perhaps_absent(field: Mapping[str, Any]) -> dict[str, Any]:
    free = "default" in field or "made" in field
    return {**field, "absent": True} if free else dict(field)


def both_sides(stored: Description, declared: Optional[Fields]) -> str:
    """The fields in the file and in the class, for an error."""
    ours = "plain data" if declared is None else _shown(declared.description)
    return f"the file has {_shown(stored)}, the class {ours}"


def _shown(description: Description) -> str:
    return spelled(description["type"], description["models"])


def renamed_path(path: str, stored: Description, renames: Renames) -> str:
    """The current names of the fields of a path such as ``address.city``."""
    kind: Optional[Type] = stored["type"]
    names: list[str] = []
    for name in path.split("."):
        number = _model_of(kind)
        kind = None
        if number is not None:
            found = [field["type"] for field in stored["models"][number]["fields"] if field["name"] == name]
            kind = found[0] if found else None
            name = renames.get(number, {}).get(name, name)
        names.append(name)
    return ".".join(names)


def _model_of(kind: Optional[Type]) -> Optional[int]:
    """The number of the one model that a type is, None apart."""
    found = [one[1] for one in _members(kind or "none") if isinstance(one, list) and one[0] == "model"]
    return found[0] if len(found) == 1 else None


def advice(relation: Relation, table: str) -> str:
    """The declaration with which the file can be opened."""
    former = ""
    if relation.lacking and relation.added:
        old, new = (path.rpartition(".")[2] for path in (relation.lacking[0], relation.added[0]))
        former = f'if {new!r} is the new name of {old!r}, write {new}: Annotated[..., zlmdb.Was("{old}")]; else '
    elif 0 < len(relation.needing) == len(relation.problems):
        former = f"give {' and '.join(relation.needing)} a default, or "
    return former + (
        f"keep the fields as they are in the file, or give the schema a migration: zlmdb.Migration(version, name, "
        f"step), where def step(t, old): old.rewrite({table!r}, change), and change(key, fields) gives the new fields"
    )
