from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

import zlmdb


@dataclass
class Session:
    user: str
    until: float  # seconds since 1970


class Sessions(zlmdb.Table[str, Session], expires="until"):
    by_user = zlmdb.Index[str]("user")


class Web(zlmdb.Schema):
    sessions: Sessions


def login(db: zlmdb.Database[Web], user: str) -> str:
    token = uuid.uuid4().hex
    with db.write() as t:
        t.sessions[token] = Session(user, until=time.time() + 3600)
    return token


def user_of(db: zlmdb.Database[Web], token: str) -> str | None:
    with db.read() as t:
        session = t.sessions.get(token)
    return None if session is None else session.user


def logout_everywhere(db: zlmdb.Database[Web], user: str) -> int:
    with db.write() as t:
        return t.sessions.by_user[user].delete()


with zlmdb.open(None, Web) as db:
    phone, laptop = login(db, "ann"), login(db, "ann")
    print("the phone belongs to", user_of(db, phone))
    print("a wrong token belongs to", user_of(db, "wrong"))
    print("logged out:", logout_everywhere(db, "ann"))
    print("the laptop belongs to", user_of(db, laptop))
