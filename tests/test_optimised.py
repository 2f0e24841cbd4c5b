"""The traps of the first hour under ``python -O``: pytest's own asserts in test files are not removed by it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
WATCHED = (
    "test_first_hour.py",
    "test_first_steps.py",
    "test_scan.py::test_the_first_loop_that_people_write_ends",
    "test_scan.py::test_whatever_the_body_does_each_record_is_visited_once",
    "test_evolution.py::test_a_renamed_field_is_refused_with_both_sides",
    "test_evolution.py::test_a_changed_type_is_refused_with_both_sides",
    "test_evolution.py::test_raw_writes_are_refused_where_the_file_records_what_follows",
    "test_index.py::test_an_older_class_never_drops_a_newer_index",
    "test_life.py::test_a_write_outside_of_a_block_says_what_to_write",
    "test_commands.py::test_no_put_locks_a_program_out_after_a_load",
    "test_values.py::test_plain_data_that_would_come_back_as_something_else_are_refused",
)


@pytest.mark.once
def test_the_traps_are_closed_without_assertions(tmp_path: Path) -> None:
    # One engine and layout, as on all interpreters: what -O leaves out does not depend on them.
    options = [
        "-q", "-m", "not once", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestConfigWarning",
        f"--basetemp={tmp_path}",
    ]  # fmt: skip
    planted = tmp_path.with_name("test_planted.py")
    planted.write_text("def test_asserts_are_kept():\n    assert __debug__\n")
    command = [sys.executable, "-O", "-m", "pytest", *options]
    done = subprocess.run(
        [*command, str(planted), *[str(TESTS / name) for name in WATCHED]],
        cwd=TESTS.parent, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert len(failed) == 1, done.stdout + done.stderr
    assert "test_asserts_are_kept" in failed[0]
