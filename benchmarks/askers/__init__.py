"""Who answers the questions of the workload `questions`: a file each, with the same few methods.

A file has ``NEEDS``, the modules to install, and ``ASKERS``, from label to class.
"""

from __future__ import annotations

import importlib
from typing import Any

FILES = ("raw_lmdb", "sqlite", "sqlalchemy_orm", "peewee_orm", "objectbox_db", "zlmdb27")


def askers() -> dict[str, Any]:
    """Label to the module that has it, in the order in which they are told."""
    modules = [importlib.import_module(f"{__name__}.{name}") for name in FILES]
    return {label: module for module in modules for label in module.ASKERS}
