"""Read-only dictionaries of the frontend in one SQLite file. Text thread after loading.

Only what a text needs is read: opening takes about a millisecond and a few hundred kB, and small caches
keep the common words. `compiler/tables.py` writes the file; `frontend.py` hands the tables to the G2P.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from edged.errors import BundleManifestInvalid

LAYOUT = 1  # `user_version` of the file
WEIGHT = "<Bh"  # tag number, weight in tenths
WEIGHT_SCALE = 10
_PAGES_KB = 1_024  # SQLite's page cache

Value = TypeVar("Value")


class Table(Generic[Value]):
    """A mapping as far as the G2P uses one: `get` and `in`."""

    def __init__(
        self, base: sqlite3.Connection, table: str, decode: Callable[[Any], Value], cached: int
    ) -> None:
        query = f"SELECT value FROM {table} WHERE key = ?"

        @lru_cache(maxsize=cached)
        def lookup(key: str) -> Value | None:
            try:
                row = base.execute(query, (key,)).fetchone()
            except UnicodeEncodeError:  # a lone surrogate is no word
                return None
            return None if row is None else decode(row[0])

        self._lookup = lookup

    def get(self, key: str, default: Value | None = None) -> Value | None:
        value = self._lookup(key)
        return default if value is None else value

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._lookup(key) is not None


class Tables:
    """The open file."""

    def __init__(self, path: Path) -> None:
        try:
            # Opened by the loading thread, read by the text thread: never by two at once.
            self._base = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            self._base.execute(f"PRAGMA cache_size = -{_PAGES_KB}")
            (layout,) = self._base.execute("PRAGMA user_version").fetchone()
            if layout != LAYOUT:
                raise BundleManifestInvalid(f"{path}: table layout {layout} instead of {LAYOUT}")
            meta = dict(self._base.execute("SELECT key, value FROM meta"))
        except sqlite3.Error as error:
            raise BundleManifestInvalid(f"{path}: {error}") from error
        self.tags: list[str] = msgspec.json.decode(meta["tags"], type=list[str])
        self.symbols: dict[str, int] = msgspec.json.decode(meta["vocab"], type=dict[str, int])
        self.special_tokens: dict[str, list[str]] = msgspec.json.decode(
            meta["tokenizer"], type=dict[str, list[str]]
        )
        self.oov: dict[str, Any] = msgspec.json.decode(meta["oov"])
        self.gold: Table[Any] = Table(self._base, "gold", _reading, 2_048)
        self.silver: Table[Any] = Table(self._base, "silver", _reading, 1_024)
        self.tag: Table[str] = Table(self._base, "tag", str, 1_024)
        self.frequent: Table[str] = Table(self._base, "frequent", str, 2_048)
        self.weight: Table[dict[str, float]] = Table(self._base, "weight", self._weights, 4_096)

    def _weights(self, packed: bytes) -> dict[str, float]:
        tags = self.tags
        return {tags[tag]: tenths / WEIGHT_SCALE for tag, tenths in struct.iter_unpack(WEIGHT, packed)}

    def close(self) -> None:
        self._base.close()


def _reading(text: str) -> Any:
    return msgspec.json.decode(text) if text.startswith("{") else text
