"""A web service: every answer to a change comes when the change is on the disk, and changes that come together share
one commit.

    pip install zlmdb fastapi uvicorn
    uvicorn service:app
    curl -X PUT localhost:8000/articles/first -H 'content-type: application/json' -d '{"title": "Hello"}'
    curl -X POST localhost:8000/articles/first/likes
    curl localhost:8000/articles
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Optional

from fastapi import Body, FastAPI, HTTPException, WebSocket, WebSocketDisconnect

import zlmdb
from zlmdb import desc


@dataclass
class Article:
    id: str
    title: str
    likes: int = 0


class Articles(zlmdb.Table[str, Article], key="id", feed=zlmdb.Feed(max_count=10_000)):
    by_title = zlmdb.UniqueIndex[str]("title")


class Store(zlmdb.Schema):
    articles: Articles


db: zlmdb.Database[Store]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """The database is open as long as the service runs. Each worker process opens it for itself."""
    global db
    with zlmdb.open(os.environ.get("ARTICLES", "articles.zlmdb"), Store) as db:
        yield


app = FastAPI(lifespan=lifespan)


@app.put("/articles/{id}", status_code=201)
async def publish(id: str, title: Annotated[str, Body(embed=True)]) -> Article:
    """Store an article. The title may be taken: the index says so, and nothing is stored."""
    article = Article(id, title)

    def store(t: Store) -> bool:
        return t.articles.put_new(id, article)

    try:
        stored = await db.arun(store)
    except zlmdb.DuplicateKey as error:
        raise HTTPException(409, f"{error.owner} has this title") from error
    if not stored:
        raise HTTPException(409, f"there is an article {id}")
    return article


@app.post("/articles/{id}/likes")
async def like(id: str) -> int:
    """Count a like. The change is one function, so that none is lost, however many come at once."""

    def count(article: Article) -> Article:
        article.likes += 1
        return article

    try:
        changed = await db.arun(lambda t: t.articles.change(id, count))
    except KeyError:
        raise HTTPException(404) from None
    return 0 if changed is None else changed.likes


@app.get("/articles/{id}")
async def article(id: str) -> Article:
    """Read one record: that takes a microsecond, so it needs no thread."""
    found = db.auto.articles.get(id)
    if found is None:
        raise HTTPException(404)
    return found


@app.get("/articles")
async def articles(size: int = 20, after: Optional[str] = None) -> dict[str, Any]:
    """A page of articles, and the cursors of those beside it."""
    with db.read() as t:
        page = t.articles.select().page(min(size, 100), after)
        return {"articles": [article for _, article in page], "next": page.next, "previous": page.previous}


@app.get("/top")
async def top() -> list[Article]:
    """What reads the whole table runs in a thread, and the other requests go on."""
    return await db.aread(lambda t: t.articles.order_by(lambda a: desc(a.likes)).limit(10).fields(lambda a: a).all())


@app.websocket("/changes")
async def changes(socket: WebSocket) -> None:
    """Send each change from now on, whichever worker makes it. To receive is how to learn that the client has left."""
    changes = db.changes(Articles, after=db.changes(Articles).last(), timeout=None)
    await socket.accept()

    async def send() -> None:
        async for change in changes:
            await socket.send_json({"number": change.number, "kind": change.kind, "id": change.key})

    sending = asyncio.create_task(send())
    try:
        while True:
            await socket.receive_text()
    except WebSocketDisconnect:
        sending.cancel()
