"""Sessions of a web application: made at login, kept alive by visits, and gone when they expire."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Optional

import zlmdb


@dataclass
class Session:
    user: str
    expires: datetime
    visits: int = 0


class Sessions(zlmdb.Table[str, Session], key=secrets.token_urlsafe):
    """Sessions under the token that the browser sends."""

    by_user = zlmdb.Index[str]("user")
    by_expiry = zlmdb.Index[datetime]("expires")


class Web(zlmdb.Schema):
    sessions: Sessions
    logins: zlmdb.Table[str, int]


Db = zlmdb.Database[Web]
LIFETIME = timedelta(minutes=30)


def login(db: Db, user: str, now: datetime) -> str:
    """A new session; its token."""

    def make(t: Web) -> str:
        t.logins[user] = t.logins.get(user, 0) + 1
        return t.sessions.add(Session(user, now + LIFETIME))

    return db.run(make)


def visit(db: Db, token: str, now: datetime) -> Optional[str]:
    """Who sends *token*, whose session lives on from *now*; None when it is unknown or has expired."""

    def touch(t: Web) -> Optional[str]:
        session = t.sessions.get(token)
        if session is None or session.expires <= now:
            return None
        session.visits += 1
        session.expires = now + LIFETIME
        t.sessions[token] = session
        return session.user

    return db.run(touch)


def expire(db: Db, now: datetime) -> int:
    """Delete the sessions that have expired; how many."""
    return db.run(lambda t: t.sessions.by_expiry.select(stop=now).delete())


def logout_everywhere(db: Db, user: str) -> int:
    return db.run(lambda t: t.sessions.by_user[user].delete())


def serve(db: Db, tokens: list[str], now: datetime, served: list[str]) -> None:
    """What one thread of the server does: every visit is a transaction of its own."""
    for token in tokens:
        user = visit(db, token, now)
        if user is not None:
            served.append(user)


def main() -> None:
    noon = datetime(2024, 3, 1, 12, tzinfo=timezone.utc)
    later, much_later = noon + timedelta(minutes=20), noon + timedelta(minutes=40)
    with zlmdb.open("web", Web, durability="commit") as db:
        ann, bob, phone = (login(db, user, noon) for user in ("ann", "bob", "ann"))
        print("expired at 12:20:", expire(db, later))

        served: list[str] = []
        threads = [threading.Thread(target=serve, args=(db, [ann, "forged"] * 5, later, served)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("served:", sorted(set(served)), len(served))

        print("bob at 12:40:", visit(db, bob, much_later))
        print("expired at 12:40:", expire(db, much_later))
        with db.read() as t:
            print("left:", [(session.user, session.visits, session.expires) for session in t.sessions.values()])
            print("bob's session:", bob in t.sessions, "- the phone's:", phone in t.sessions)
            print("next to expire:", next(iter(t.sessions.by_expiry.groups()))[0])
            print("logins:", dict(t.logins))
        print("logged out:", logout_everywhere(db, "ann"))
        with db.read() as t:
            print("sessions:", len(t.sessions), "- in the index:", t.sessions.by_expiry.select().count())


if __name__ == "__main__":
    main()
