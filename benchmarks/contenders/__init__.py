"""The contenders, one file each, with the same few functions.

A file has ``NEEDS``, the packages to install (module name: requirement), and ``VARIANTS``, from label to a function
that opens a `Store` at a path for a shape of records and a level of durability. To add one: a file, and its name here.
"""

from __future__ import annotations

import importlib
from typing import Any

FILES = (
    "zlmdb27", "zlmdb27_calls", "zlmdb26", "raw_lmdb", "rocksdb", "leveldb", "sqlite", "sqlalchemy_orm", "peewee_orm",
    "objectbox_db", "sqlite_dict", "disk_cache", "zodb", "shelf", "pandas_csv", "hf_datasets", "plain_dict",
)  # fmt: skip
BASELINE = "raw lmdb + "


def contenders() -> dict[str, Any]:
    """Label to the module that has the contender, in the order in which they are told."""
    modules = [importlib.import_module(f"{__name__}.{name}") for name in FILES]
    return {label: module for module in modules for label in module.VARIANTS}
