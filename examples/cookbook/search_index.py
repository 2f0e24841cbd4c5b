from __future__ import annotations

import re

import zlmdb


def words(document: str) -> list[str]:
    return sorted(set(re.findall(r"\w+", document.casefold())))


class Documents(zlmdb.Table[int, str]):
    by_word = zlmdb.Index[str](words, version=1, each=True)


class Library(zlmdb.Schema):
    documents: Documents


def search(t: Library, text: str) -> list[int]:
    found = [set(t.documents.by_word[word].keys()) for word in words(text)]
    return sorted(found[0].intersection(*found[1:])) if found else []


with zlmdb.open(None, Library) as db:
    with db.write() as t:
        for text in ("The cat sat on the mat", "A dog and a cat", "The dog barks"):
            t.documents.add(text)

    with db.read() as t:
        for text in ("Cat", "cat dog", "bird"):
            print(f"{text}: {search(t, text)}")
        print("ba...:", sorted(set(t.documents.by_word.select(startswith="ba").keys())))
