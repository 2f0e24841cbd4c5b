"""How Sphinx builds these pages: `tox -e docs`, warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Optional

from sphinx.application import Sphinx

import zlmdb._version

sys.path.insert(0, str(Path(__file__).parent))
import charts

project = "zlmdb"
author = "The zlmdb authors"
copyright = "The zlmdb authors"
release = zlmdb._version.__version__

extensions = ["sphinx.ext.autodoc"]


def setup(app: Sphinx) -> None:
    """Draw the charts of the performance page from the saved results, before the pages are read; shorten signatures."""
    app.connect("builder-inited", lambda _: charts.build())
    app.connect("autodoc-process-signature", _said_once)


def _said_once(_app: Sphinx, _what: str, name: str, *_: object) -> Optional[tuple[str, str]]:
    """No signature for a named map: it is that of `PersistentMap`, 83 times, and half a megabyte of the page."""
    return ("", "") if name.startswith("zlmdb.classic.maps.Map") else None


html_theme = "furo"
pygments_dark_style = "github-dark"  # that of the theme underlines the names of classes, like links
html_title = f"zlmdb {release}"
html_static_path = ["_static"]
html_css_files = ["page.css"]
exclude_patterns = ["_build", "_charts/*.rst"]

# Options of commands begin with two dashes, and JSON has straight quotes.
smartquotes = False

# `name` in single backticks is code, in docstrings and pages alike; links are spelled out as roles.
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

# Names of ours must resolve where they are public: those of `zlmdb` itself, and of the packages that have pages. Those
# of other libraries need their inventories, and so a network; type variables, what is internal to the codec packages,
# and modules that users do not import from are documented nowhere.
nitpick_ignore_regex = [
    ("py:.*", r"(?!zlmdb\b).*"),
    ("py:.*", r"zlmdb(\.\w+)*\.[A-Z]"),
    ("py:.*", r"zlmdb\.(keys|query|values)\.\w+\.\w+"),
    ("py:.*", r"zlmdb\.operations\.oldtables\.Step"),
    ("py:.*", r"zlmdb\.(?!(engines|errors|keys|operations|values)\.)[a-z]\w*(\.[a-z]\w*)*\.[A-Z]\w+"),
]
