"""What table classes know the declarations in their bodies by."""

from __future__ import annotations


class Declares:
    """The base of all declarations of indexes and links. A table without any does without the module of indexes."""
