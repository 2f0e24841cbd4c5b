"""Waiting for commits, of this process and of others, without looking again and again.

Whoever waits makes a named pipe (FIFO) in a directory beside the data file, ``data.mdb-waiting``, and sleeps until a
byte arrives in it. A committer looks for this directory, which is there only while somebody waits, and writes a byte
into each pipe of the table that it has changed. A pipe without a reader is that of a process which was killed: it is
removed. Where nobody may make pipes (Windows, a directory that cannot be written) those who wait look every 20 ms.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Optional
from weakref import WeakValueDictionary, ref

from ..loops import running_loop
from ..notifier import Notifier, ring_all
from ..store import openstores
from ..systems import posix

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

LOOK = 0.02
"""Seconds between two looks, where no pipe can be made."""

PATIENCE = 5.0
"""Seconds after which those who wait look all the same: a process may have been killed between commit and ring."""

Wait = Callable[[Optional[float]], bool]
AsyncWait = Callable[[Optional[float]], Awaitable[bool]]

_OPEN = os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0
_STALE = 60.0  # seconds after which the unfinished pipe of a killed process is removed
_ATTEMPTS = 20  # to make a pipe while others remove the directory: whoever gives up looks as long as it waits
_numbers = count()
_paths: dict[str, None] = {}  # of the pipes of this process; each step with it is one call


class Doorbell:
    """The bell of a table: in memory that of this process; of the file *file* also that of others.

    *topic* is a number of the table. Begin to listen, then look, then wait: a ring after the look is heard.
    """

    def __init__(self, file: Optional[str], topic: int, *, shared: bool) -> None:
        self._directory = None if file is None else f"{file}-waiting"
        self._file = file
        self._topic = topic
        self._bell = self.notifier = Notifier()
        self._shared = shared
        self._ears: WeakValueDictionary[int, _Ear] = WeakValueDictionary()  # by the `id` of a loop

    def ring(self) -> None:
        """Wake all who listen. Never raises: what is stored is stored."""
        self._bell.ring()
        if self._directory is not None:
            with suppress(OSError):  # nearly always: there is no such directory, as nobody waits
                names = os.listdir(self._directory)
                woken = {ear.path for ear in list(self._ears.values()) if ear.is_own} if names else ()
                for name in names:
                    path = os.path.join(self._directory, name)
                    if name.startswith(f"{self._topic}.") and path not in woken:
                        _ring(path)

    @contextmanager
    def listen(self) -> Generator[Wait, None, None]:
        """A block that hears the bell; its object waits at most so many seconds, and says whether the bell rang."""
        pipe = self._pipe()
        if pipe is not None:

            def wait_for_pipe(seconds: Optional[float]) -> bool:
                heard = pipe.wait(seconds)
                if heard:  # perhaps the ring of another process
                    self._bell.rung()
                return heard

            try:
                yield wait_for_pipe
            finally:
                pipe.close()
        else:
            with self._bell.listen() as wait:
                yield lambda seconds: wait(self._at_most(seconds))

    @asynccontextmanager
    async def alisten(self) -> AsyncGenerator[AsyncWait, None]:
        """As `listen`, for a task of asyncio."""
        loop = running_loop()
        async with self._bell.alisten() as wait:
            ear = self._ear(loop)
            me = object()
            try:
                if ear is not None:
                    ear.tasks[me] = None
                yield lambda seconds: wait(seconds if ear is not None else self._at_most(seconds))
            finally:
                if ear is not None:
                    ear.leave(me, loop)

    def _ear(self, loop: AbstractEventLoop) -> Optional[_Ear]:
        """That of all tasks of the running *loop*: each with a pipe, they would soon have all files of the process."""
        ear = self._ears.get(id(loop))
        if ear is not None and ear.hears(loop):
            return ear
        pipe = self._pipe()
        if pipe is None:
            return None
        ear = _Ear(pipe, loop)
        try:
            loop.add_reader(pipe.reader, ear.heard, self._bell)
        except NotImplementedError:  # of an event loop that cannot wait for pipes
            pipe.close()
            return None
        self._ears[id(loop)] = ear
        return ear

    def _at_most(self, seconds: Optional[float]) -> Optional[float]:
        """How long to wait where nothing but a look tells of other processes."""
        if not self._shared:
            return seconds
        return LOOK if seconds is None else min(seconds, LOOK)

    def _pipe(self) -> Optional[_Pipe]:
        if self._directory is None or self._file is None or not hasattr(os, "mkfifo"):
            return None
        try:
            return _Pipe(self._directory, self._topic, os.stat(self._file), os.stat(os.path.dirname(self._file)))
        except OSError:
            return None


class _Ear:
    """The *pipe* by which the tasks of an event *loop* hear. The last one that leaves closes it."""

    def __init__(self, pipe: _Pipe, loop: AbstractEventLoop) -> None:
        self._pipe = pipe
        self._loop = ref(loop)
        self.tasks: dict[object, None] = {}
        self.path = pipe.path

    def hears(self, loop: AbstractEventLoop) -> bool:
        """Whether it is that of *loop*, in this process."""
        return self._loop() is loop and self._pipe.is_open and self.is_own

    @property
    def is_own(self) -> bool:
        """As that of its pipe."""
        return self._pipe.is_own

    def heard(self, bell: Notifier) -> None:
        """Somebody has written into the pipe."""
        if self._pipe.is_own:
            self._pipe.drain()
            bell.ring()

    def leave(self, me: object, loop: AbstractEventLoop) -> None:
        """The task *me* does not wait any more."""
        self.tasks.pop(me, None)
        # Where the loop was closed, all this is garbage, and a collector may have closed the pipe before.
        if not self.tasks and self._pipe.is_open:
            if self._pipe.is_own:  # a child and its parent have one epoll object: the parent would not wake any more
                loop.remove_reader(self._pipe.reader)
            self._pipe.close()


class _Pipe:
    """A named pipe in *directory* that is as accessible as the data file, of which *like* and *parent* tell."""

    def __init__(self, directory: str, topic: int, like: os.stat_result, parent: os.stat_result) -> None:
        self._fds: list[int] = []
        self._directory = directory
        # A process may have the number of another one, in a container of its own.
        name = f"{topic}.{os.getpid()}.{next(_numbers)}.{os.urandom(4).hex()}"
        self.path = os.path.join(directory, name)
        unfinished = os.path.join(directory, f".{name}")
        self._process = os.getpid()
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._make_directory(parent)
                posix.mkfifo(unfinished, 0o600)
                break
            except FileNotFoundError:  # who waited there last has removed the directory just now
                if not left:
                    raise
        try:
            self._open(unfinished)
            with suppress(OSError):  # of a file of another user
                os.chmod(unfinished, like.st_mode & 0o666)
            os.rename(unfinished, self.path)  # from now on others ring
            _paths[self.path] = None
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            self.close()
            raise
        system: Any = select
        self._poll: Any = system.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            self._poll.register(self.reader, system.POLLIN)

    def _make_directory(self, parent: os.stat_result) -> None:
        with suppress(FileExistsError):
            os.mkdir(self._directory, 0o700)
            with suppress(OSError):
                os.chmod(self._directory, stat.S_IMODE(parent.st_mode))
            return
        for name in os.listdir(self._directory):
            if name.startswith("."):
                path = os.path.join(self._directory, name)
                with suppress(OSError):
                    if time.time() - os.stat(path).st_mtime > _STALE:
                        os.unlink(path)

    def _open(self, path: str) -> None:
        self._fds.append(os.open(path, os.O_RDONLY | _OPEN))
        self._fds.append(os.open(path, os.O_WRONLY | _OPEN))  # else the reader wakes when the last ringer has closed

    @property
    def is_open(self) -> bool:
        """Whether there is something to close."""
        return len(self._fds) > 0

    @property
    def is_own(self) -> bool:
        """Whether this process has made it, and not the one that it was forked from."""
        return self._process == os.getpid()

    @property
    def reader(self) -> int:
        """The descriptor that can be read after a ring."""
        return self._fds[0]

    def wait(self, seconds: Optional[float]) -> bool:
        """Wait for a ring."""
        if not self.is_own:  # what is read here, the parent would not hear
            time.sleep(LOOK if seconds is None else max(0.0, min(seconds, LOOK)))
            return False
        if self._poll is None:
            heard: list[Any] = select.select([self.reader], [], [], seconds)[0]
        else:
            heard = self._poll.poll(None if seconds is None else max(0.0, seconds) * 1000)
        if heard:
            self.drain()
        return bool(heard)

    def drain(self) -> None:
        """Forget all rings so far."""
        with suppress(BlockingIOError):
            while len(os.read(self.reader, 4096)) == 4096:
                pass

    def close(self) -> None:
        """Remove the pipe."""
        _paths.pop(self.path, None)
        while self._fds:
            os.close(self._fds.pop())
        if self.is_own:
            with suppress(OSError):
                os.unlink(self.path)
            with suppress(OSError):  # others wait there, too
                os.rmdir(self._directory)

    def __del__(self) -> None:  # an asynchronous generator whose event loop was closed never comes to its end
        if self.is_open:
            try:  # noqa: SIM105 - nothing is left of this module where the interpreter ends
                self.close()
            except (AttributeError, TypeError):
                pass


def _ring(path: str) -> None:
    """Write a byte into the pipe *path*, or remove it if nobody reads it any more."""
    try:
        pipe = os.open(path, os.O_WRONLY | _OPEN | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno == errno.ENXIO:
            with suppress(OSError):
                os.unlink(path)
                os.rmdir(os.path.dirname(path))
        return
    try:
        if stat.S_ISFIFO(os.fstat(pipe).st_mode):
            os.write(pipe, b"!")
    except OSError:  # full, so that it is awake; or its reader has just gone
        pass
    finally:
        os.close(pipe)


def _wake_all() -> None:
    """Wake all who listen in this process: what they wait for may be closed."""
    ring_all()
    for path in list(_paths):
        _ring(path)


openstores.at_close.append(_wake_all)
