"""Random schemas, writes and queries give what dicts and lists give: `query_fuzz` and `wide_fuzz` go on for hours."""

from __future__ import annotations

import pytest
import query_fuzz
import wide_fuzz
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.once  # plans do not depend on the interpreter
FEW = max(settings.default.max_examples // 5, 4)


@pytest.mark.parametrize("engine", ["memory", "lmdb"])
def test_queries_give_what_plain_dicts_give_whatever_is_written_between(engine: str) -> None:
    @settings(max_examples=FEW, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32))
    def asked(seed: int) -> None:
        query_fuzz.run(seed, engine, blocks=4, processes=0.0)

    asked()


@pytest.mark.once  # PyPy compiles none of it in time
@pytest.mark.parametrize("engine", ["memory", "lmdb"])
def test_queries_of_many_types_give_what_lists_give(engine: str) -> None:
    @settings(max_examples=max(FEW // 4, 2), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32))
    def asked(seed: int) -> None:
        wide_fuzz.run(seed, engine, rounds=2, queries=10)

    asked()


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("seed", range(4))
def test_queries_give_the_same_while_another_process_writes(seed: int) -> None:
    assert query_fuzz.run(seed, "lmdb", blocks=6, processes=1.0) > 0
