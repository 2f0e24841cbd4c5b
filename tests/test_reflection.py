"""Binary schemas of FlatBuffers, which packages built on zlmdb <= 26 read with ``zlmdb.flatbuffers.reflection``."""

from __future__ import annotations

import importlib
from typing import Any

import flatbuffers
import pytest

pytestmark = pytest.mark.once  # what is in the bytes does not depend on the version of Python

KINDS = ["KeyValue", "Type", "EnumVal", "Enum", "Field", "Object", "RPCCall", "Service", "SchemaFile", "Schema"]
PACKAGE = "zlmdb.flatbuffers.reflection"


def reflected(name: str, package: str = PACKAGE) -> Any:
    return getattr(importlib.import_module(f"{package}.{name}"), name)


class Writer:
    """Writes the tables of a schema: the fields of a table are given by their numbers."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(0)

    def table(self, fields: dict[int, Any]) -> Any:
        """A text and a place is an offset; a number comes with the name of its kind."""
        made = {number: self.builder.CreateString(v) if isinstance(v, str) else v for number, v in fields.items()}
        self.builder.StartObject(16)
        for number, value in made.items():
            if isinstance(value, tuple):
                kind, amount = value
                getattr(self.builder, f"Prepend{kind}Slot")(number, amount, None)
            else:
                self.builder.PrependUOffsetTRelativeSlot(number, value, 0)
        return self.builder.EndObject()

    def vector(self, *places: Any) -> Any:
        offsets = [self.builder.CreateString(p) if isinstance(p, str) else p for p in places]
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return self.builder.EndVector()

    def bytes(self, root: Any) -> bytes:
        self.builder.Finish(root, file_identifier=b"BFBS")
        return bytes(self.builder.Output())


def a_schema() -> bytes:
    """What ``flatc`` writes for an enum, a table with two fields, and a service, as far as this test reads it."""
    w = Writer()
    attribute = w.table({0: "priority", 1: "1"})
    number = w.table({0: ("Int8", 9), 4: ("Uint32", 8)})
    texts = w.table({0: ("Int8", 14), 1: ("Int8", 13), 2: ("Int32", 3), 3: ("Uint16", 2), 5: ("Uint32", 4)})
    age = w.table({0: "age", 1: number, 2: ("Uint16", 1), 3: ("Uint16", 6), 4: ("Int64", -7), 5: ("Float64", 0.5),
                   6: ("Bool", True), 7: ("Bool", True), 8: ("Bool", True), 9: w.vector(attribute),
                   10: w.vector(" In years.", ""), 11: ("Bool", True),
                   12: ("Uint16", 3), 13: ("Bool", True)})  # fmt: skip
    names = w.table({0: "names", 1: texts})
    user = w.table({0: "shop.User", 1: w.vector(age, names), 2: ("Bool", True), 3: ("Int32", 4), 4: ("Int32", 16),
                    7: "//shop.fbs"})  # fmt: skip
    red = w.table({0: "Red", 1: ("Int64", -1), 3: number, 4: w.vector(" Warm.")})
    color = w.table({0: "shop.Color", 1: w.vector(red), 2: ("Bool", True), 3: number, 6: "//shop.fbs"})
    call = w.table({0: "find", 1: user, 2: user})
    service = w.table({0: "shop.Finder", 1: w.vector(call), 4: "//shop.fbs"})
    file = w.table({0: "//shop.fbs", 1: w.vector("//a.fbs", "//b.fbs")})
    return w.bytes(w.table({0: w.vector(user), 1: w.vector(color), 2: "SHOP", 3: "shop", 4: user,
                            5: w.vector(service), 6: ("Uint64", 4), 7: w.vector(file)}))  # fmt: skip


def test_a_binary_schema_is_read() -> None:
    schema = reflected("Schema").GetRootAs(a_schema())
    assert [schema.FileIdent(), schema.FileExt(), schema.AdvancedFeatures()] == [b"SHOP", b"shop", 4]
    assert [schema.ObjectsLength(), schema.EnumsLength(), schema.ServicesLength(), schema.FbsFilesLength()] == [1] * 4
    user = schema.Objects(0)
    assert (user.Name(), user.DeclarationFile(), user.IsStruct()) == (b"shop.User", b"//shop.fbs", True)
    assert (user.Minalign(), user.Bytesize(), schema.RootTable().Name()) == (4, 16, b"shop.User")
    color = schema.Enums(0)
    assert (color.Name(), color.IsUnion(), color.UnderlyingType().BaseType()) == (b"shop.Color", True, 9)
    red = color.Values(0)
    assert (red.Name(), red.Value(), red.UnionType().BaseSize(), red.Documentation(0)) == (b"Red", -1, 8, b" Warm.")
    service = schema.Services(0)
    call = service.Calls(0)
    assert (service.Name(), call.Name(), call.Request().Name()) == (b"shop.Finder", b"find", b"shop.User")
    assert call.Response().Fields(0).Name() == b"age"
    file = schema.FbsFiles(0)
    assert [file.IncludedFilenames(j) for j in range(file.IncludedFilenamesLength())] == [b"//a.fbs", b"//b.fbs"]


def test_a_field_tells_all_about_itself() -> None:
    age = reflected("Schema").GetRootAs(a_schema()).Objects(0).Fields(0)
    assert (age.Name(), age.Id(), age.Offset(), age.Padding()) == (b"age", 1, 6, 3)
    assert (age.DefaultInteger(), age.DefaultReal()) == (-7, 0.5)
    for truth in (age.Deprecated(), age.Required(), age.Key(), age.Optional(), age.Offset64()):
        assert truth is True
    assert (age.Attributes(0).Key(), age.Attributes(0).Value()) == (b"priority", b"1")
    assert [age.Documentation(j) for j in range(age.DocumentationLength())] == [b" In years.", b""]
    kind = reflected("Schema").GetRootAs(a_schema()).Objects(0).Fields(1).Type()
    assert (kind.BaseType(), kind.Element(), kind.Index(), kind.FixedLength(), kind.ElementSize()) == (14, 13, 3, 2, 4)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_not_in_the_bytes_has_its_default(name: str) -> None:
    writer = Writer()
    found = reflected(name).GetRootAs(writer.bytes(writer.table({})))
    methods = [m for m in dir(found) if m[0] != "_" and m != "Init" and "Root" not in m and "Identifier" not in m]
    for method in methods:
        if f"{method}Length" in methods:
            expected = "" if method in ("Documentation", "IncludedFilenames") else None
            assert (getattr(found, method)(0), getattr(found, f"{method}Length")()) == (expected, 0)
            assert getattr(found, f"{method}IsNone")() is True
        elif not method.endswith(("Length", "IsNone")):
            assert getattr(found, method)() in ({"Index": -1, "BaseSize": 4}.get(method, 0), None)


def test_the_methods_that_the_compiler_names_after_the_table_are_here() -> None:
    data = a_schema()
    for buffer in (data, bytearray(data), b"xx" + data):
        offset = len(buffer) - len(data)
        assert reflected("Schema").GetRootAsSchema(buffer, offset).FileIdent() == b"SHOP"
        assert reflected("Schema").SchemaBufferHasIdentifier(buffer, offset) is True
    assert not reflected("Field").FieldBufferHasIdentifier(data[:4] + b"XXXX" + data[8:], 0)
    field = reflected("Field")()
    field.Init(data, reflected("Schema").GetRootAs(data).Objects(0).Fields(0)._tab.Pos)
    assert isinstance(field, reflected("Field"))
    assert field.Name() == b"age"


def test_the_kinds_of_types_have_the_numbers_of_flatbuffers() -> None:
    kinds, features = reflected("BaseType"), reflected("AdvancedFeatures")
    assert (kinds.None_, kinds.UType, kinds.Long, kinds.ULong, kinds.String, kinds.Vector64) == (0, 1, 9, 10, 13, 18)
    assert (features.AdvancedArrayFeatures, features.DefaultVectorsAndStrings) == (1, 8)


def test_the_reader_is_found_under_the_older_name() -> None:
    old = reflected("Schema", "zlmdb._flatbuffers_vendor.reflection")
    assert old.GetRootAs(a_schema()).Objects(0).Name() == b"shop.User"
