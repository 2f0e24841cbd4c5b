"""The web service of the examples, with real requests on the loopback interface."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

httpx = pytest.importorskip("httpx", reason="the test needs httpx")
uvicorn = pytest.importorskip("uvicorn", reason="the test needs uvicorn")
pytest.importorskip("fastapi", reason="the example needs fastapi")

SERVICE = Path(__file__).parents[1] / "examples" / "webservice" / "service.py"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, str]]:
    """The module, and the address at which it answers."""
    monkeypatch.setenv("ARTICLES", str(tmp_path / "articles"))
    spec = importlib.util.spec_from_file_location("service", SERVICE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "service", module)  # where annotations are looked up
    spec.loader.exec_module(module)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(module.app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    yield module, f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)
    listening.close()
    assert not thread.is_alive()


def test_requests_that_come_together_share_commits(service: Any) -> None:
    module, address = service

    async def requests() -> None:
        async with httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as client:
            assert (await client.get("/articles/first")).status_code == 404
            assert (await client.put("/articles/first", json={"title": "Hello"})).status_code == 201
            assert (await client.put("/articles/first", json={"title": "Other"})).status_code == 409
            assert (await client.put("/articles/second", json={"title": "Hello"})).status_code == 409
            before = commits()
            likes = await asyncio.gather(*[client.post("/articles/first/likes") for _ in range(200)])
            assert sorted(answer.json() for answer in likes) == list(range(1, 201))
            assert commits() - before < 200
            await asyncio.gather(*[client.put(f"/articles/{n:02}", json={"title": f"No {n}"}) for n in range(30)])
            assert (await client.get("/articles/first")).json() == {"id": "first", "title": "Hello", "likes": 200}
            page = (await client.get("/articles", params={"size": 20})).json()
            rest = (await client.get("/articles", params={"size": 20, "after": page["next"]})).json()
            found = [one["id"] for one in (*page["articles"], *rest["articles"])]
            assert found == [f"{n:02}" for n in range(30)] + ["first"]
            assert rest["next"] is None
            back = (await client.get("/articles", params={"size": 20, "after": rest["previous"]})).json()
            assert back == page
            assert (await client.get("/top")).json()[0]["id"] == "first"
            assert (await client.post("/articles/none/likes")).status_code == 404

    def commits() -> int:
        with module.db.read() as t:
            number: int = t.txn.id()
            return number

    asyncio.run(requests())


def test_a_websocket_tells_of_each_change_and_ends_with_its_client(service: Any, tmp_path: Path) -> None:
    module, address = service
    scope = {
        "type": "websocket", "asgi": {"version": "3.0"}, "scheme": "ws", "path": "/changes", "raw_path": b"/changes",
        "query_string": b"", "root_path": "", "headers": [], "subprotocols": [],
    }  # fmt: skip

    async def follow() -> None:
        coming: asyncio.Queue[Any] = asyncio.Queue()
        sent: asyncio.Queue[Any] = asyncio.Queue()
        coming.put_nowait({"type": "websocket.connect"})
        served = asyncio.ensure_future(module.app(scope, coming.get, sent.put))
        assert (await sent.get())["type"] == "websocket.accept"
        async with httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as client:
            for number in (1, 2):
                await client.put(f"/articles/{number}", json={"title": f"No {number}"})
                told = json.loads((await asyncio.wait_for(sent.get(), 20))["text"])
                assert told == {"number": number, "kind": "put", "id": str(number)}
        coming.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait_for(served, 20)

    asyncio.run(follow())
    assert not (tmp_path / "articles" / "data.mdb-waiting").exists()  # nobody waits for changes any more
