"""What can be worked out again is kept for its user, within bounds, and lost without harm."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grader import cache
from grader.user_folders import cache_folder

KEY = cache.key_of("a key")


def files() -> list[Path]:
    folder = cache_folder()
    assert folder is not None
    return [*folder.glob("*/*")]


def test_a_value_is_found_by_its_key_alone() -> None:
    assert cache.load(KEY) is None
    cache.save(KEY, b"value")
    assert cache.load(KEY) == b"value"
    assert cache.load(cache.key_of("another")) is None


def test_a_key_is_of_all_its_parts_and_of_where_each_ends() -> None:
    keys = [("ab", "c"), ("a", "bc"), ("abc",), ("c", "ab"), ("abc", ""), ("\ud800", "")]
    assert len({cache.key_of(*parts) for parts in keys}) == len(keys)


@pytest.mark.parametrize("damage", [b"", b"short", bytes(32) + b"value"])
def test_what_is_damaged_was_not_kept(damage: bytes) -> None:
    cache.save(KEY, b"value")
    (path,) = files()
    path.write_bytes(damage)
    assert cache.load(KEY) is None
    cache.save(KEY, b"value")
    assert cache.load(KEY) == b"value"


def test_what_was_not_used_for_the_longest_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 1_000)
    monkeypatch.setattr(cache, "LOOK_EVERY", 1)
    keys = [cache.key_of(str(number)) for number in range(9)]
    for age, key in enumerate(keys):
        cache.save(key, bytes(100))
        for path in files():
            if path.name == key:
                os.utime(path, (age, age))
    kept = [key for key in keys if cache.load(key)]
    assert keys[-1] in kept
    assert sum(path.stat().st_size for path in files()) <= 1_000
    assert kept == keys[-len(kept) :]


def test_too_many_files_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_FILES", 8)
    monkeypatch.setattr(cache, "LOOK_EVERY", 1)
    for number in range(30):
        cache.save(cache.key_of(str(number)), b"value")
        assert len(files()) <= 8


def test_a_value_that_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_VALUE", 4)
    cache.save(KEY, b"value")
    assert files() == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_nobody_else_can_read_what_is_kept() -> None:
    cache.save(KEY, b"value")
    (path,) = files()
    assert path.stat().st_mode & 0o077 == path.parent.stat().st_mode & 0o077 == 0


def test_without_a_place_nothing_is_kept_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    cache.save(KEY, b"value")
    assert cache.load(KEY) is None


def test_many_at_once_read_whole_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 100_000)
    monkeypatch.setattr(cache, "LOOK_EVERY", 1)

    def use(number: int) -> bool:
        value = bytes([number % 5]) * 5_000
        key = cache.key_of(str(number % 5))
        cache.save(key, value)
        return cache.load(key) in (value, None)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(200)))
