"""Programs of the length of a page, which use the surface as people would, say what they should; also under -O."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"

SAID = {
    "address_book": """\
        5 people
        born: 1815-12-10
        names with al: ['Alan Turing', 'alonzo church']
        in London: ['Ada Lovelace', 'Alan Turing']
        birthday 14.6.: alonzo church
        birthday 23.6.: Alan Turing
        birthday 9.12.: Grace Hopper
        birthday 10.12.: Ada Lovelace
        in December: 2
        entered last: alonzo church
        note: ask for the Café Central
        ada@example.com is taken by Ada Lovelace
        note of Paris: None
        Ada Lovelace is in Paris now, +44 20 1815 or +33 1 1815
        in London: 0
        """,
    "sensor_log": """\
        attic: 720 readings
        cellar: 720 readings
        attic: 34.3 °C at 05.03. 23:50, battery 96 %
          last hour: 6 readings, 34.05 °C
        cellar: 19.3 °C at 05.03. 23:50, battery 96 %
          last hour: 6 readings, 19.05 °C
        alarm hot: 15 times, first in the attic at 01.03. 23:30
        deleted: 432
        deleted again: 0
        attic begins at 2024-03-04 00:00:00+00:00
        left: {'attic': 288, 'cellar': 720}
        alarms left: 6
        refused: table 'readings', key ('attic', datetime.datetime(2024, 3, 6, 12, 0)): part 2 of tuple(str,datetime): \
datetime.datetime(2024, 3, 6, 12, 0) is not a key of type datetime (it has no time zone): expected a datetime with a \
time zone, such as datetime.now(timezone.utc), in the years 1 to 9999 of UTC
        """,
    "web_sessions": """\
        expired at 12:20: 0
        served: ['ann'] 20
        bob at 12:40: None
        expired at 12:40: 2
        left: [('ann', 20, datetime.datetime(2024, 3, 1, 12, 50, tzinfo=datetime.timezone.utc))]
        bob's session: False - the phone's: False
        next to expire: 2024-03-01 12:50:00+00:00
        logins: {'ann': 2, 'bob': 1}
        logged out: 1
        sessions: 0 - in the index: 0
        """,
    "dataset_workers": """\
        alone: 2000 records, 500 cats
        by 4 processes (fork): True
        a snapshot stays as it was: True 2000
        by 4 processes (spawn): True
        a snapshot stays as it was: True 2000
        at the end: {'cat': 500, 'dog': 500, 'bird': 500, 'fish': 500}
        """,
    "classic_to_tables": """\
        -- tables
        0: User(oid=UUID('00000000-0000-0000-0000-00000000000c'), name='Bob', email='bob@acme.com', \
org=UUID('00000000-0000-0000-0000-000000000001'))
        1: 2 ['Anne', 'Bob']
        2: Anne 2
        3: True 2
           ['Anne', 'Dan'] False
           dan@acme.com belongs to Dan
        4: 1 ['Anne', 'Dan']
        4: 2 ['Bob']
           checked: {'ann@acme.com': 11, 'bob@acme.com': 12, 'dan@acme.com': 14}
        """,
    "explore_unknown": """\
        cities: 5 records, str -> msgpack, indexes: by_people
        states: 1 records, int -> pickle, indexes: none
        visited: 1 records, uuid -> zlib(json), indexes: none
        weather: 14 records, tuple(str,date) -> float64, indexes: none

        cities
          'Lima': {'name': 'Lima', 'people': 10092000, 'founded': '1535-01-18'}
          'Mexico City': {'name': 'Mexico City', 'people': 9209944, 'founded': '1521-08-13'}
          'Oslo': {'name': 'Oslo', 'people': 717710, 'founded': '1048-01-01'}

        states
          1: b'\\x80\\x05\\x95\\x17\\x00\\x00\\x00\\x00\\x00\\x00\\x00}\\x94\\x8c\\x02of\\x94\\x8c\\x0bthe \
program\\x94s.'

        visited
          UUID('00000000-0000-0000-0000-000000000001'): ['Lima', 'Oslo']

        weather
          ('Lima', datetime.date(2024, 3, 1)): 21.5
          ('Lima', datetime.date(2024, 3, 2)): 22.5
          ('Lima', datetime.date(2024, 3, 3)): 23.5

        cities with San: ['San Antonio', 'Santiago']
        from M to Q: [('Mexico City', 9209944), ('Oslo', 717710)]
        greatest: Lima
        last of Lima: (('Lima', datetime.date(2024, 3, 7)), 27.5)
        KeyError: no table 'citys' in the file; did you mean 'cities'?
        ReadonlyDatabase: the database 'world' was opened read-only: open it with readonly=False to write
        """,
}
EXPECTED = {name: textwrap.dedent(text) for name, text in SAID.items()}
# The same steps once more, in a file that zlmdb <= 26 can read.
EXPECTED["classic_to_tables"] += EXPECTED["classic_to_tables"].replace("-- tables", "-- classic")


def run(program: str, directory: Path, *options: str) -> str:
    """What *program* prints in *directory*; warnings are errors."""
    command = [sys.executable, "-W", "error", "-X", "utf8", *options, str(PROGRAMS / f"{program}.py")]
    done = subprocess.run(command, cwd=directory, capture_output=True, encoding="utf-8", check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    "options", [pytest.param((), id="plain"), pytest.param(("-O",), id="optimised", marks=pytest.mark.once)]
)
@pytest.mark.parametrize("program", EXPECTED)
def test_a_program_says_what_it_should(program: str, options: tuple[str, ...], tmp_path: Path) -> None:
    assert run(program, tmp_path, *options) == EXPECTED[program]
