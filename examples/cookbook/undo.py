from dataclasses import dataclass
from typing import Callable

import zlmdb


@dataclass
class Note:
    title: str
    text: str = ""


class Notes(zlmdb.Table[int, Note], feed=True): ...


class Desk(zlmdb.Schema):
    notes: Notes
    undo: zlmdb.Table[int, tuple[int, int]]  # the changes of a step: after this number, up to that one
    redo: zlmdb.Table[int, tuple[int, int]]


Steps = Callable[[Desk], zlmdb.Table[int, tuple[int, int]]]


class Editor:
    def __init__(self, db: zlmdb.Database[Desk]) -> None:
        self.db = db
        self.changes = db.changes(Notes)

    def do(self, action: Callable[[Desk], object]) -> None:
        with self.db.write() as t:
            before = self.changes.last(t)
            action(t)
            t.undo.add((before, self.changes.last(t)))
            t.redo.clear()

    def undo(self) -> None:
        self._take_back(lambda t: t.undo, lambda t: t.redo)

    def redo(self) -> None:
        self._take_back(lambda t: t.redo, lambda t: t.undo)

    def _take_back(self, source: Steps, target: Steps) -> None:
        with self.db.write() as t:
            step = source(t).last()
            if step is None:
                return
            number, (first, last) = step
            before = self.changes.last(t)
            for change in reversed(self.db.changes(Notes, after=first).take(last - first)):
                if change.kind == "clear":  # of which the feed has no records
                    raise ValueError("this step cannot be undone")
                if change.old is None:
                    del t.notes[change.key]
                else:
                    t.notes[change.key] = change.old
            del source(t)[number]
            target(t).add((before, self.changes.last(t)))  # what was done here is itself a step


def shout(t: Desk) -> None:
    for key, note in t.notes.items():
        t.notes[key] = Note(note.title.upper(), note.text)


with zlmdb.open(None, Desk) as db:
    editor = Editor(db)

    def show(what: str) -> None:
        with db.read() as t:
            print(f"{what}:", [note.title for note in t.notes.values()])

    editor.do(lambda t: [t.notes.add(Note("milk")), t.notes.add(Note("tea"))])
    editor.do(shout)
    show("two steps")
    editor.undo()
    show("undo")
    editor.undo()
    show("undo")
    editor.redo()
    editor.redo()
    show("redo, redo")
