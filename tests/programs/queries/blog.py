"""A blog: posts with tags and comments, authors, the front page."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Optional

from typing_extensions import assert_type

import zlmdb
from zlmdb import desc


@dataclass
class Author:
    name: str
    banned: bool = False


@dataclass
class Tag:
    name: str


@dataclass
class Post:
    author: int
    title: str
    posted: datetime
    published: bool = True
    tags: list[int] = field(default_factory=list[int])


@dataclass
class Comment:
    post: int
    author: Optional[int]
    text: str
    score: int


class Authors(zlmdb.Table[int, Author]): ...


class Tags(zlmdb.Table[int, Tag]):
    by_name = zlmdb.UniqueIndex[str]("name")


class Posts(zlmdb.Table[int, Post]):
    by_author = zlmdb.ForeignKey["Authors"]("author")
    by_tag = zlmdb.ForeignKey["Tags"]("tags", each=True)
    by_posted = zlmdb.Index[datetime]("posted")


class Comments(zlmdb.Table[int, Comment]):
    by_post = zlmdb.ForeignKey["Posts"]("post", on_delete="cascade")
    by_author = zlmdb.ForeignKey["Authors"]("author", on_delete="set_none")


class Blog(zlmdb.Schema):
    authors: Authors
    tags: Tags
    posts: Posts
    comments: Comments


NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def fill(t: Blog) -> None:
    for n in ("ann", "bob", "cid"):
        t.authors.add(Author(n, n == "cid"))
    for n in ("db", "python", "cats"):
        t.tags.add(Tag(n))
    a, g = list(t.authors), list(t.tags)
    for i in range(30):
        t.posts.add(
            Post(
                a[i % 3],
                f"post {i}",
                NOW - timedelta(days=i * 7 % 31),
                i % 5 != 0,
                [g[j] for j in range(3) if i >> j & 1],
            )
        )
    p = list(t.posts)
    for i in range(80):
        t.comments.add(Comment(p[i * 7 % 30], None if i % 9 == 0 else a[i % 3], f"c{i}", i % 11 - 3))


def front_page(t: Blog) -> list[tuple[str, str, int, list[str]]]:
    """The last 5 posts: title, author, number of comments, the names of the tags."""
    rows = (
        t.posts.where(lambda p: p.published and not t.authors[p.author].banned)
        .order_by(lambda p: (desc(p.posted), p.title))
        .limit(5)
        .fields(
            lambda k, p: (
                p.title,
                t.authors[p.author].name,
                t.comments.by_post[k].count(),
                sorted(t.tags[tag].name for tag in p.tags),
            )
        )
    )
    assert_type(rows, zlmdb.Reads[tuple[str, str, int, list[str]]])
    return rows.all()


def tagged(t: Blog, name: str) -> list[str]:
    return t.posts.where(lambda p: any(t.tags[tag].name == name for tag in p.tags)).fields(lambda p: p.title).all()


def best_comments(t: Blog, post: int) -> list[tuple[Optional[str], str]]:
    return (
        t.comments.by_post[post]
        .where(lambda c: c.score > 0)
        .order_by(lambda c: c.score, reverse=True)
        .limit(3)
        .fields(lambda c: (None if c.author is None else t.authors[c.author].name, c.text))
        .all()
    )


def quiet_authors(t: Blog) -> list[str]:
    """Those without a comment of 5 and more on any of their posts."""
    return (
        t.authors.where(
            lambda k, a: not any(t.comments.by_post[p].where(lambda c: c.score >= 7) for p, _ in t.posts.by_author[k])
        )
        .fields(lambda a: a.name)
        .all()
    )


def posts_a_month(t: Blog) -> dict[tuple[int, int], int]:
    return t.posts.select().group_by(lambda p: (p.posted.year, p.posted.month), lambda g: g.count())


def tidy(t: Blog, author: int) -> None:
    """Delete an author with all posts, and with their comments; comments elsewhere lose their author."""
    t.posts.by_author[author].delete()
    del t.authors[author]


def run() -> None:
    db = zlmdb.open(None, Blog)
    with db.write() as t:
        fill(t)
    with db.read() as t:
        live = [(k, p) for k, p in t.posts.items() if p.published and not t.authors[p.author].banned]
        live.sort(key=lambda r: r[1].title)
        live.sort(key=lambda r: r[1].posted, reverse=True)
        assert front_page(t) == [
            (
                p.title,
                t.authors[p.author].name,
                sum(1 for c in t.comments.values() if c.post == k),
                sorted(t.tags[x].name for x in p.tags),
            )
            for k, p in live[:5]
        ]
        assert tagged(t, "db") == [p.title for p in t.posts.values() if any(t.tags[x].name == "db" for x in p.tags)]
        for k in t.posts:
            mine = [c for c in t.comments.values() if c.post == k and c.score > 0]
            mine = list(reversed(sorted(mine, key=lambda c: c.score)))[:3]
            assert best_comments(t, k) == [
                (None if c.author is None else t.authors[c.author].name, c.text) for c in mine
            ]
        assert quiet_authors(t) == [
            a.name
            for k, a in t.authors.items()
            if not any(c.score >= 7 for c in t.comments.values() if t.posts[c.post].author == k)
        ], quiet_authors(t)
        want: dict[tuple[int, int], int] = {}
        for p in t.posts.values():
            want[p.posted.year, p.posted.month] = want.get((p.posted.year, p.posted.month), 0) + 1
        assert posts_a_month(t) == want
    with db.write() as t:
        cid = 3
        tidy(t, cid)
        assert {p.author for p in t.posts.values()} == {1, 2}
        assert all(c.post in t.posts and c.author != cid for c in t.comments.values())
        tag = next(iter(t.tags))
        try:
            del t.tags[tag]
        except zlmdb.StillLinked:
            print(f"tag {tag} is still in use")
        assert tag in t.tags


if __name__ == "__main__":
    run()
