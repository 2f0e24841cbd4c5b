"""Help for the tests of programs that use zlmdb: databases that end with their test, failures on request, kills.

pytest finds the fixtures of `zlmdb.testing.plugin` by itself. `inject` and `kill_points` need no pytest.
"""

from .faults import Faults, inject
from .kills import kill_points
from .openers import Opener, database_fixture

__all__ = ["Faults", "Opener", "database_fixture", "inject", "kill_points"]
