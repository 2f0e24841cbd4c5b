"""The futures of submitted functions behave as those of the library, whichever thread comes first."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, TimeoutError, as_completed, wait
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from zlmdb.store.futures import Submitted


def finished(value: Any) -> Submitted[Any]:
    future: Submitted[Any] = Submitted()
    assert future.set_running_or_notify_cancel()
    future.set_result(value)
    return future


OURS = {"_abc_impl", "_callbacks", "_queues", "_take_condition", "_take_waiters", "_wait"}


def test_it_has_all_that_a_future_of_the_library_has() -> None:
    own = {name for name in vars(Submitted) if name.startswith("_") and not name.endswith("__")}
    assert set(vars(Future())) == own - OURS | {*vars(Submitted())}
    assert "made" not in vars(finished(1)) or not isinstance(vars(finished(1))["made"], threading.Condition)


def test_a_result_is_there_whether_it_is_asked_before_or_afterwards() -> None:
    assert finished(5).result() == finished(5).result(0) == 5
    done = finished(6)
    assert (done.done(), done.running(), done.cancelled(), done.cancel()) == (True, False, False, False)
    assert done.exception() is None
    assert "finished" in repr(done)
    future: Submitted[int] = Submitted()
    with pytest.raises(TimeoutError):
        future.result(0.001)
    assert not future.done()
    assert (future.set_running_or_notify_cancel(), future.running(), future.cancel()) == (True, True, False)
    future.set_result(7)
    assert future.result() == 7


def test_an_error_is_raised() -> None:
    future: Submitted[int] = Submitted()
    future.set_running_or_notify_cancel()
    future.set_exception(KeyError(1))
    with pytest.raises(KeyError):
        future.result()
    assert isinstance(future.exception(), KeyError)


def test_of_running_and_cancelling_the_first_one_wins() -> None:
    future: Submitted[int] = Submitted()
    assert (future.cancel(), future.cancel(), future.cancelled()) == (True, True, True)
    assert not future.set_running_or_notify_cancel()
    with pytest.raises(CancelledError):
        future.result()
    first: Submitted[int] = Submitted()
    vars(first)["fate"] = "cancelled"  # the other thread is in the middle of `cancel`
    told: list[object] = []
    first.add_done_callback(told.append)
    assert not first.set_running_or_notify_cancel()
    assert first.cancelled()
    assert told == [first]


def test_a_callback_is_called_once_whenever_it_is_added() -> None:
    told: list[object] = []
    early: Submitted[int] = Submitted()
    early.add_done_callback(told.append)
    early.set_running_or_notify_cancel()
    early.set_result(1)
    late = finished(2)
    late.add_done_callback(told.append)
    assert told == [early, late]


def test_what_waits_for_several_gets_each_once_in_any_order_of_the_steps() -> None:
    for turn in range(60):
        futures: list[Submitted[int]] = [Submitted() for _ in range(20)]

        def finish(futures: list[Submitted[int]] = futures) -> None:
            for number, future in enumerate(futures):
                if future.set_running_or_notify_cancel():
                    future.set_result(number)

        thread = threading.Thread(target=finish)
        thread.start()
        if turn % 3 == 0:
            assert sorted(future.result() for future in as_completed(futures, timeout=10)) == list(range(20))
        elif turn % 3 == 1:
            assert not wait(futures, timeout=10).not_done
        else:
            assert wait(futures, timeout=10, return_when=FIRST_COMPLETED).done
            assert [future.result(10) for future in futures] == list(range(20))
        thread.join()


def test_who_takes_the_condition_while_it_is_being_finished_waits_for_that() -> None:
    from zlmdb.store import futures

    future: Submitted[int] = Submitted()
    vars(future)["made"] = futures._FINISHING
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(future.result(10)))
    thread.start()
    future._result, future._state = 3, "FINISHED"
    vars(future)["made"] = futures._DONE
    thread.join(10)
    assert found == [3]


def test_a_future_is_not_pickled(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, zlmdb.Schema) as db:
        future = db.submit(lambda t: 1)
        for use in (pickle.dumps, copy.deepcopy, copy.copy):
            with pytest.raises(TypeError, match=r"a future of submit\(\) belongs to this process.*: give its result"):
                use(future)
        assert future.result(20) == 1
