"""The commands of ``python -m zlmdb``, also installed as ``zlmdb``: one file per command or group of commands."""

from . import contents as contents
from . import copies as copies
from . import demo as demo
from . import fbs as fbs
from . import indexes as indexes
from . import inspect as inspect
from . import links as links
from . import migrate as migrate
from . import output as output
from . import records as records
from . import repair as repair
from . import streams as streams
from .group import main as main
