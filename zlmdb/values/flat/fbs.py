"""The schema of a model class in the language of flatc."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Optional

from .nodes import Field, Node, Scalar, Struct, Table, UnionOf
from .schema import Schema

# Field by field: what flatc would take for a value, and what its Python classes have as methods.
RESERVED = frozenset(["true", "false", "null", "nan", "inf", "infinity", "init", "getrootas", "sizeof"])


def text(annotation: Any, localns: Optional[Mapping[str, Any]] = None) -> str:
    """The ``.fbs`` text of *annotation*."""
    return _Writer(Schema(annotation, localns)).text()


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """What flatc calls *names*: the same in letters that it knows, but for words of its own and what is *taken*.

    No two are alike but for case and underscores, because its generated classes spell them in camel case.

    >>> identifiers(["size", "größe", "true", "a_b", "aB"])
    {'size': 'size', 'größe': 'gr_f6_df_e', 'true': 'true_', 'a_b': 'a_b', 'aB': 'aB_2'}
    """
    used = {_folded(name) for name in taken}
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^0-9A-Za-z_]", lambda one: f"_{ord(one[0]):x}_", name).replace("__", "_")
        plain = plain if _folded(plain) not in RESERVED else f"{plain}_"
        chosen, number = plain, 2
        while _folded(chosen) in used:
            chosen, number = f"{plain.rstrip('_')}_{number}", number + 1
        used.add(_folded(chosen))
        found[name] = chosen
    return found


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


class _Writer:
    """Writes the parts of one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.members = {name: identifiers(member.name for member in cls) for name, (cls, _) in schema.enums.items()}
        """What flatc calls the members of each enum."""

    def text(self) -> str:
        schema = self.schema
        blocks = [self.enum(name) for name in schema.enums]
        blocks += [_struct(name, node) for name, node in schema.structs.items()]
        blocks += [_union(name, node) for name, node in schema.unions.items()]
        blocks += [self.table(table) for table in schema.tables]
        return "\n".join([*blocks, f"root_type {schema.root.fbs};\n"])

    def enum(self, name: str) -> str:
        cls, width = self.schema.enums[name]
        members = sorted(cls, key=lambda member: int(member.value))
        lines = [f"  {self.members[name][member.name]} = {member.value}" for member in members]
        return f"enum {name}:{width.fbs} {{\n" + ",\n".join(lines) + "\n}\n"

    def table(self, table: Table) -> str:
        kinds = [f"{field.name}_type" for field in table.fields if isinstance(field.node, UnionOf)]
        names = identifiers((field.name for field in table.fields), kinds)
        lines: list[str] = []
        number = 0
        for field in table.fields:
            first = field.id - isinstance(field.node, UnionOf)
            for gap in range(number, first):  # flatc wants no gaps: what was there is not used any more
                lines.append(f"  removed_{gap}: ubyte (id: {gap}, deprecated);\n")
            number = field.id + 1
            what = f"{field.node.fbs}{self.default(field)} ({_attributes(field)})"
            lines.append(f"  {names[field.name]}: {what};\n")
        return f"table {table.fbs} {{\n{''.join(lines)}}}\n"

    def default(self, field: Field) -> str:
        node: Node = field.node
        if not isinstance(node, Scalar):
            return ""
        if field.optional:
            return " = null"
        value = field.default_value
        if not value:
            return ""
        if node.fbs in self.members:
            return f" = {self.members[node.fbs][self.schema.enums[node.fbs][0](value).name]}"
        return f" = {str(value).lower() if value is True else value}"


def _struct(name: str, node: Struct) -> str:
    names = identifiers(field for field, _, _ in node.members)
    lines = [f"  {names[field]}: {part.fbs};\n" for field, _, part in node.members]
    return f"struct {name} {{\n{''.join(lines)}}}\n"


def _union(name: str, node: UnionOf) -> str:
    return f"union {name} {{ {', '.join(table.fbs for _, table, _ in node.members)} }}\n"


def _attributes(field: Field) -> str:
    # flatc knows no required unions; a struct or reference without default must be there.
    must = field.default is None and not isinstance(field.node, (Scalar, UnionOf))
    return f"id: {field.id}{', required' if must else ''}"
