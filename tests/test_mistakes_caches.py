"""What newcomers get wrong with caches: each is told what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from newcomers import Moment

import zlmdb


def test_an_option_of_other_caches_is_answered_with_those_of_ours() -> None:
    with zlmdb.Cache(None) as cache:
        use: Any = cache
        for method in (use.set, use.add):
            with pytest.raises(TypeError, match=r"has no option ttl: expire= is the seconds"):
                method("a", 1, ttl=60)
        with pytest.raises(TypeError, match=r"set.. has no option read, retry: values are in .*; nothing"):
            use.set("a", 1, read=True, retry=True)


def test_what_diskcache_returns_beside_a_value_is_named() -> None:
    with zlmdb.Cache(None) as cache:
        use: Any = cache
        use.set("a", 1, tag="t")
        with pytest.raises(TypeError, match=r"^get.. has no option expire_time, tag: cache.details.key. has the"):
            use.get("a", expire_time=True, tag=True)
        with pytest.raises(TypeError, match=r"^get.. has no option read: values are in the database"):
            use.get("a", None, True)
        with pytest.raises(TypeError, match=r"^pop.. has no option tag: .* `with cache.transact..:`"):
            use.pop("a", tag=True)
        assert use.get("a", None, False, expire_time=False, tag=False, retry=False) == 1
        with cache.transact():
            assert cache.details("a") == (use.pop("a", retry=False), None, "t")


def test_a_cache_names_what_cannot_be_added_and_what_is_no_parameter() -> None:
    with zlmdb.Cache(None) as cache:
        cache["name"] = "Ann"
        with pytest.raises(TypeError, match=r"incr\('name', 1\): the value is 'Ann' \(str\)"):
            cache.incr("name")
        with pytest.raises(ValueError, match=r"ignore: .*visit\(\) has no parameter 'sesion'; did you mean 'session'"):

            @cache.memoize(ignore=("sesion",))
            def visit(session: object, page: int) -> int:
                return page

        @cache.memoize(ignore="session")
        def look(session: object, page: int) -> int:
            return page

        assert look(object(), 1) == look(object(), 1) == 1


def test_a_size_of_a_cache_that_is_no_number_is_named() -> None:
    with pytest.raises(ValueError, match=r"^size_limit='1GB': expected a number of bytes"):
        zlmdb.Cache(None, size_limit="1GB")  # type: ignore[call-overload]


def test_methods_of_other_caches_are_answered_and_not_listed() -> None:
    with zlmdb.Cache(None) as cache:
        asked: Any = cache
        for name, said in [("keys", "for key in cache"), ("setex", "expire=seconds"), ("ttl", "details")]:
            with pytest.raises(AttributeError, match=said):
                getattr(asked, name)
            assert name not in dir(cache)
            assert not hasattr(zlmdb.Cache, name)
        with pytest.raises(TypeError, match=r"touch\(key, expire=seconds\)"):
            asked.expire("a", 10)
        with pytest.raises(TypeError, match="memoize.. has no option ttl"):
            asked.memoize(ttl=5)


def test_a_cache_with_keys_of_another_type_is_named(tmp_path: Path) -> None:
    zlmdb.Cache(tmp_path / "cache").close()
    with pytest.raises(zlmdb.SchemaMismatch, match="the cache .* does not have keys of type int: give the type"):
        zlmdb.Cache(tmp_path / "cache", int, str)
    zlmdb.Cache(tmp_path / "cache").close()


def _yields_nothing() -> int:
    return 1


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda cache: cache.set(1, 2), "the cache, key 1: 1 is not a key of type str"),
        (lambda cache: cache.set("", 2), "the cache: the key is empty"),
        (lambda cache: cache.evict(5), r"evict\(5\): expected a tag, which is a text"),
        (
            lambda cache: cache.memoize(60)(_yields_nothing),
            r"memoize\(60\): expected the name of the results.* write expire=",
        ),
        (
            lambda cache: cache.set("x" * 600, 2),
            r"the cache: the key 'x.* takes 600 bytes, at most 511 fit: shorten it$",
        ),
        (lambda cache: cache.get("x" * 600), r"the cache: the key 'x.* takes 600 bytes, at most 511 fit: shorten it$"),
        (
            lambda cache: cache.set("x", 2, tag="y" * 600),
            r"the cache: the tag with the key \('y.* takes 60. .*shorten",
        ),
        (lambda cache: cache.set("x" * 509, 2, expire=9), r"the cache: the time of expiry with the key \(.* takes 5.."),
        (lambda cache: cache.incr("x", "2"), r"incr\('x', '2'\): the value is 0 \(int\), to which '2' cannot be added"),
        (lambda cache: zlmdb.Cache(3), r"expected a path, or None for a cache in memory, got 3: zlmdb.Cache\(path\)"),  # type: ignore[call-overload]
        (lambda cache: zlmdb.Cache(None, Moment, str), r"Cache\(path, key, value\): .*Moment is not a key type"),
    ],
)
def test_a_mistake_with_a_cache_is_told_of_the_cache_and_not_of_its_tables(asked: Any, advice: str) -> None:
    with zlmdb.Cache(None) as cache, pytest.raises((TypeError, zlmdb.EncodeError), match=f"^{advice}"):
        asked(cache)


def test_a_cache_says_which_value_it_cannot_store() -> None:
    with zlmdb.Cache(None) as cache:

        @cache.memoize("pair")
        def pair(number: int) -> Any:
            return (number, number)

        with pytest.raises(zlmdb.EncodeError, match=r"^the cache, key 'pair\(number=1\)': the value: .*\(1, 1\)"):
            pair(1)
        with pytest.raises(zlmdb.EncodeError, match=r"^the cache, key 'a': the value: .*declare the type"):
            cache.set("a", {1, 2})
