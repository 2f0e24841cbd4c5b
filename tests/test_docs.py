"""The documentation names modules that exist, and shows the layers as `tests.test_rules` checks them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .test_rules import MODULES, PACKAGE, RANK, ROOT, unit

pytestmark = pytest.mark.once  # the pages are the same everywhere

PAGES = sorted([*(ROOT / "docs").glob("*.rst"), *(ROOT / "docs" / "api").glob("*.rst")])
PATH = re.compile(r"``((?:[\w-]+/)*[\w-]+(?:\.py|/))``")


def paths(text: str) -> list[str]:
    """The files and directories of ours that a page names, such as ``store/scans.py`` and ``values/``."""
    return PATH.findall(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    # `copies/` and `data/` are examples of what a user may have.
    named = [path for path in paths(page.read_text(encoding="utf-8")) if path not in {"copies/", "program.py"}]
    missing = [path for path in named if not any((root / path).exists() for root in (PACKAGE, ROOT))]
    assert not missing, f"docs/{page.name} names what does not exist: {missing}"


def test_the_design_page_lists_all_modules_in_the_order_of_their_layers() -> None:
    page = (ROOT / "docs" / "design.rst").read_text(encoding="utf-8")
    table = page.partition("Layers\n------")[2].partition("The tree differs")[0].partition("list-table")[2]
    listed = [re.sub(r"(\.py|/)$", "", path).replace("/", ".") for path in paths(table)]
    ranks = [RANK[name] for name in listed]
    assert ranks == sorted(ranks), (
        "a module stands above one that it may import: order them as ROWS of tests/test_rules.py"
    )
    packages = {"cache", "database", "feed", "schema", "store", "tables"}
    packages |= {"tables.compiled", "tables.executor", "tables.indexkinds"}
    absent = {unit(module) for module in MODULES} - set(listed) - packages - {"zlmdb", "__main__"}
    assert not absent, f"the layers of docs/design.rst lack {sorted(absent)}: add each to the row where it belongs"
