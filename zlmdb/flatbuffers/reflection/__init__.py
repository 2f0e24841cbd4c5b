"""Reads schemas in binary form, which ``flatc --binary --schema`` writes: `Schema.Schema` is the root of one.

The `flatbuffers` package has no such reader. The names are those that ``flatc`` gives to the schema of schemas, so that
packages built on zlmdb <= 26 find them. There are no functions that build a schema: ``flatc`` does that.
"""
