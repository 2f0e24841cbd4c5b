"""The definition of a value serializer: a round trip between values of one type and bytes."""

from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Generic, Optional, TypeVar, Union

from ..errors import DecodeError, EncodeError, Error
from ..handlers import let_through
from ..shown import show as show

if TYPE_CHECKING:
    from .paths import Path

T = TypeVar("T")

Data = Union[bytes, memoryview]
"""What is decoded: bytes, or a memoryview that is valid only while its transaction is open."""

Encode = Callable[[Any], bytes]
Decode = Callable[[Any], Any]


class Serializer(ABC, Generic[T]):
    """Converts values of one type to bytes and back: ``decode(encode(value)) == value``, with the same type.

    A serializer of your own is a subclass with a *name* and the two ``raw_`` methods; `encode` and `decode` call them.
    Put it into an annotation, as a class or an instance: ``Annotated[Point, PointSerializer]``.
    """

    name: str
    """What the bytes are, in the file's own terms: ``"uuid"``, ``"zlib(cbor)"``. Never the name of a class."""

    expects: str = ""
    """What fits, for the texts of errors."""

    model: Optional[str] = None
    """The name of the model class. Information only: renaming the class locks nobody out."""

    examples: Sequence[T] = ()
    """Values that fit. The tests run over them."""

    takes_type: bool = False
    """Whether an instance in an annotation still has to be told, by `of_type`, what it stands beside."""

    @classmethod
    def for_type(cls, annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """The serializer of this format for values of the type *annotation*.

        *localns* are names, in addition to those of its module, that the type's own annotations may use.
        """
        return cls()

    @abstractmethod
    def raw_encode(self, value: T) -> bytes:
        """The bytes of *value*, as `encode`; may raise any exception. Refuses everything that does not fit."""

    @abstractmethod
    def raw_decode(self, data: Data) -> T:
        """The value of *data*, as `decode`; may raise any exception."""

    @property
    def bytes_decode(self) -> Decode:
        """`raw_decode` for data that is bytes, and never a memoryview."""
        return self.raw_decode

    def encode(self, value: T) -> bytes:
        """The bytes of *value*. Raises `EncodeError` for a value that does not fit."""
        try:
            return self.raw_encode(value)
        except (Error, MemoryError):
            raise
        except Exception as error:
            let_through(error)
            said = self._refusal("store", f"{show(value)} ({typename(type(value))})", error)
            if isinstance(error, OverflowError) and "msgpack" in self.name:
                from .largeints import large_int  # late: for this error only

                where = large_int(value)
                said += where and f"; {where}"
            raise EncodeError(said) from error

    def decode(self, data: Data) -> T:
        """The value of *data*. Raises `DecodeError` for bytes that this serializer did not write."""
        try:
            return self.raw_decode(data)
        except (Error, MemoryError):
            raise
        except Exception as error:
            let_through(error)
            size = len(data)
            begin = bytes(data[:16]).hex() + ("..." if size > 16 else "")
            raise DecodeError(self._refusal("read", f"{size} bytes ({begin})", error), size=size) from error

    def configured(self, **callables: Optional[Callable[..., Any]]) -> Serializer[Any]:
        """A copy with the *callables* of a classic map, by name. Raises TypeError for those that it does not use."""
        refuse_callables(self.name, callables)
        return self

    def of_type(self, annotation: Any, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """The meaning of ``Annotated[annotation, self]``: this serializer, or a copy for the type.

        A serializer that needs the type has ``takes_type = True``.
        """
        return self

    def columns(self) -> Any:
        """A reader of single fields of stored values (`flat.columns`), or None."""
        return None

    def narrow(self, paths: Collection[Path]) -> Optional[Decode]:
        """A function of stored bytes that decodes what *paths* name only, as an object that has these fields, or None.

        What else is in the record it may leave unread, also where that is broken.
        """
        return None

    def rewriter(self, fields: Collection[str], read: Collection[str]) -> Optional[tuple[Decode, Encode]]:
        """How records are stored again of which *fields* are set, and nothing else is changed, in less time; or None.

        The first function gives objects that have the fields *read*, and need not be of the model class; the second
        one is given them with all of *fields*, and raises for one that does not fit.
        """
        return None

    def parts(self) -> Any:
        """How a loop makes the values of a dataclass faster than by `raw_decode`: `narrow.Parts`, or None."""
        return None

    def _encoder_of_lists(self) -> Optional[Callable[[Sequence[T]], list[bytes]]]:
        """A function that does `raw_encode` with each value of a list, in less time, or None."""
        return None

    def classic(self) -> Serializer[T]:
        """The serializer of these values in the classic layout: this one, except for pickles of model classes."""
        return self

    def unchecked(self) -> Serializer[T]:
        """A copy that does not check values on writing, if checking takes extra time; else this serializer."""
        return self

    def _refusal(self, verb: str, what: str, error: Exception) -> str:
        expected = f"expected {self.expects}; " if self.expects else ""
        if is_of_depth(error):
            return f"{self.name} cannot {verb} {what}: it is nested too deeply, or holds itself: store keys of records"
        return f"{self.name} cannot {verb} {what}: {expected}{error or typename(type(error))}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{f' of {self.model}' if self.model is not None else ''}>"


def is_of_depth(error: Exception) -> bool:
    """Whether *error* says that a value is nested too deeply for the stack.

    PyPy raises TypeError where the stack ends while it notes during which other exception one was raised.
    """
    return isinstance(error, RecursionError) or (isinstance(error, TypeError) and "RecursionError" in str(error))


class FunctionSerializer(Serializer[T]):
    """A serializer made of two functions.

    Its ``raw_encode`` and ``raw_decode`` *are* these functions, often methods of a C type, without a call in between.
    """

    def __init__(
        self, name: str, encode: Encode, decode: Decode, *, model: Optional[str] = None, examples: Sequence[T] = ()
    ) -> None:
        self.name = name
        self.model = model
        self.examples = examples
        vars(self).update(raw_encode=encode, raw_decode=decode)

    # Never reached, the instance's own attributes come first; they are here for the abstract methods and for checkers.
    def raw_encode(self, value: T) -> bytes:
        raise NotImplementedError

    def raw_decode(self, data: Data) -> T:
        raise NotImplementedError


class InnerSerializer(FunctionSerializer[T]):
    """What changes the bytes of another serializer, *inner*. A subclass says with `_around` how it is made again."""

    def __init__(self, method: str, inner: Serializer[T], encode: Encode, decode: Decode) -> None:
        super().__init__(f"{method}({inner.name})", encode, decode, model=inner.model, examples=inner.examples)
        self.inner = inner
        self.expects = inner.expects

    @abstractmethod
    def _around(self, inner: Serializer[Any]) -> Serializer[Any]:
        """A copy whose inner serializer is *inner*."""

    def configured(self, **callables: Optional[Callable[..., Any]]) -> Serializer[Any]:
        """A copy whose inner serializer has these callables."""
        return self._around(self.inner.configured(**callables))

    def unchecked(self) -> Serializer[T]:
        """A copy whose inner serializer is unchecked."""
        return self._around(self.inner.unchecked())

    def classic(self) -> Serializer[T]:
        """A copy whose inner serializer is the classic one."""
        return self._around(self.inner.classic())


class Wrapper(ABC):
    """Changes another serializer: ``Annotated[Json[User], X]`` applies X to the serializer of ``Json[User]``."""

    @classmethod
    @abstractmethod
    def around(cls, inner: Serializer[Any]) -> Serializer[Any]:
        """The changed *inner*."""


class WrapperOptions(ABC):
    """A wrapper with options, an instance in an annotation: ``Annotated[Json[User], Compression("zstd")]``."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in vars(self).items()])})"

    @abstractmethod
    def around(self, inner: Serializer[Any]) -> Serializer[Any]:
        """The changed *inner*."""


class UncheckedWrapper(Wrapper):
    """The `Unchecked` annotation: values are stored without a check, for programs whose values are known to be right.

    A value that does not fit the type may then be stored, and raises `DecodeError` when it is read.
    """

    @classmethod
    def around(cls, inner: Serializer[Any]) -> Serializer[Any]:
        """*inner* without its checks."""
        return inner.unchecked()


def refuse_callables(name: str, given: Mapping[str, Optional[object]], used: Collection[str] = ()) -> None:
    """Raise TypeError if the serializer *name* is *given* a callable, not None, that it does not use."""
    names = [f"{key}=" for key, value in given.items() if value is not None and key not in used]
    if names:
        raise TypeError(f"a value stored as {name} takes no {' and no '.join(names)}: leave it out")


def is_a(value: object, cls: Any) -> bool:
    """``isinstance``, without narrowing the type of *value*: for an Any, checkers would infer ``list[Unknown]``."""
    return isinstance(value, cls)


KEEP = "declare the type of the values, or use a format that keeps it (Pickle)"
"""What to do about plain data that a format would change, for errors."""


def is_free(annotation: Any) -> bool:
    """Whether *annotation* does not restrict the value, which is plain data then."""
    return annotation is None or annotation is Any or annotation is object or isinstance(annotation, TypeVar)


def typename(annotation: Any) -> str:
    """*annotation* as source text."""
    if isinstance(annotation, type) and not hasattr(annotation, "__origin__"):
        hidden = annotation.__module__ in ("builtins", "__main__")
        return annotation.__qualname__ if hidden else f"{annotation.__module__}.{annotation.__qualname__}"
    if hasattr(annotation, "__supertype__"):  # a NewType, which was a function before Python 3.10
        return str(annotation.__name__)
    return str(annotation).replace("typing.", "")


def typenames(given: Any) -> str:
    """What stands in the brackets of a class, one annotation or a tuple of them, as source text; no modules."""
    every = given if is_a(given, tuple) else (given,)
    return ", ".join([one.__qualname__ if type(one) is type else typename(one) for one in every])


def near(value: Any, classes: Collection[type[Any]]) -> str:
    """What to say of *value*, which is refused, if its class looks like one of *classes*; "" if it does not."""
    cls: type[Any] = value.__class__
    name = typename(cls)
    if cls in classes or cls is bool:
        return ""
    if name in [typename(one) for one in classes]:
        return (
            ", another class of this name: it was defined again, as by a cell or a module that runs twice; define the "
            "table and the schema again, too, and open the database with them"
        )
    if name.startswith("numpy."):
        return f": convert it, with its {'.tolist()' if name.endswith('.ndarray') else '.item()'}"
    if (cls is float and value != value) or (name.startswith("pandas.") and name.endswith(("NaTType", "NAType"))):
        return ", as pandas has for a missing value: give None in place of it, and the field an Optional type"
    if name.startswith("freezegun."):
        return ", which stands for it while freezegun stops the clock: use time-machine, which needs no such class"
    for one in classes:
        if cls is dict and getattr(one, "__annotations__", None):
            return f": make one of its fields, {one.__name__}(**...)"
        if issubclass(cls, one):
            if hasattr(cls, "to_pydatetime"):  # of pandas
                return f": convert it, with its {'.date()' if one.__name__ == 'date' else '.to_pydatetime()'}"
            return f", a subclass, which would be read as {typename(one)}: convert it, with {one.__name__}(...)"
    return ""


def library(module: str, install: str) -> Any:
    """The optional *module*, imported now. Raises ImportError with the line that installs it.

    The result is Any: these libraries have no annotations, or are not installed where types are checked.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        frozen = hasattr(sys, "frozen")  # PyInstaller and others, which find imports by name only where code has it
        advice = f"freeze the program with --hidden-import {module}" if frozen else f"pip install {install}"
        raise ImportError(f"{module} is needed and not installed: {advice}") from error
