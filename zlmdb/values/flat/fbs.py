"""The schema of a model class in the language of flatc."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Optional

from .markers import Width
from .nodes import Field, Node, Scalar, Struct, Table, UnionOf
from .schema import Schema

Enums = Mapping[str, tuple[type[enum.Enum], Width]]


def text(annotation: Any, localns: Optional[Mapping[str, Any]] = None) -> str:
    """The ``.fbs`` text of *annotation*."""
    schema = Schema(annotation, localns)
    blocks = [_enum(name, cls, width.fbs) for name, (cls, width) in schema.enums.items()]
    blocks += [_struct(name, node) for name, node in schema.structs.items()]
    blocks += [_union(name, node) for name, node in schema.unions.items()]
    blocks += [_table(table, schema.enums) for table in schema.tables]
    return "\n".join([*blocks, f"root_type {schema.root.fbs};\n"])


def _enum(name: str, cls: type[enum.Enum], base: str) -> str:
    members = sorted(cls, key=lambda member: int(member.value))
    lines = [f"  {member.name} = {member.value}" for member in members]
    return f"enum {name}:{base} {{\n" + ",\n".join(lines) + "\n}\n"


def _struct(name: str, node: Struct) -> str:
    lines = [f"  {field}: {part.fbs};\n" for field, _, part in node.members]
    return f"struct {name} {{\n{''.join(lines)}}}\n"


def _union(name: str, node: UnionOf) -> str:
    return f"union {name} {{ {', '.join(table.fbs for _, table, _ in node.members)} }}\n"


def _table(table: Table, enums: Enums) -> str:
    lines: list[str] = []
    number = 0
    for field in table.fields:
        first = field.id - isinstance(field.node, UnionOf)
        for gap in range(number, first):  # flatc wants no gaps: what was there is not used any more
            lines.append(f"  removed_{gap}: ubyte (id: {gap}, deprecated);\n")
        number = field.id + 1
        lines.append(f"  {field.name}: {field.node.fbs}{_default(field, enums)} ({_attributes(field)});\n")
    return f"table {table.fbs} {{\n{''.join(lines)}}}\n"


def _attributes(field: Field) -> str:
    # flatc knows no required unions; a struct or reference without default must be there.
    must = field.default is None and not isinstance(field.node, (Scalar, UnionOf))
    return f"id: {field.id}{', required' if must else ''}"


def _default(field: Field, enums: Enums) -> str:
    node: Node = field.node
    if not isinstance(node, Scalar):
        return ""
    if field.optional:
        return " = null"
    value = field.default_value
    if not value:
        return ""
    if node.fbs in enums:
        return f" = {enums[node.fbs][0](value).name}"
    return f" = {str(value).lower() if value is True else value}"
