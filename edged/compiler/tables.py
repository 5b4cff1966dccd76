"""Writes the dictionaries of the hibari frontend as one read-only SQLite file.

CLI process only; `voices/hibari/tables.py` reads it and owns the layout. Rows are inserted in sorted
order into a fresh file, so that the same dictionaries give the same bytes.
"""

from __future__ import annotations

import errno
import gzip
import json
import sqlite3
import struct
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from edged.voices.hibari.tables import LAYOUT, WEIGHT, WEIGHT_SCALE

_SCHEMA = """
PRAGMA page_size = 4096;
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE gold (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE silver (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tag (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE frequent (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE weight (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


def write(target: Path, assets: Path, oov: dict[str, Any]) -> None:
    """Reads the package's JSON files from `assets`; `oov` describes the word reader's alphabets."""
    tagger = _json(assets, "tagger.json.gz")
    tags: list[str] = tagger["tags"]
    meta = {
        "vocab": _json(assets, "vocab.json"),
        "tokenizer": _json(assets, "tokenizer_exceptions.json"),
        "tags": tags,
        "oov": oov,
    }
    number = {tag: index for index, tag in enumerate(tags)}
    try:
        with closing(sqlite3.connect(target)) as base, base:
            base.executescript(_SCHEMA)
            base.execute(f"PRAGMA user_version = {LAYOUT}")
            _fill(base, "gold", _readings(_json(assets, "lexicon_us_gold.json.gz")))
            _fill(base, "silver", _readings(_json(assets, "lexicon_us_silver.json.gz")))
            _fill(base, "tag", tagger["tagdict"].items())
            _fill(base, "frequent", ((word, "") for word in tagger["vocab"]))
            _fill(base, "weight", ((key, _pack(row, number)) for key, row in tagger["weights"].items()))
            _fill(base, "meta", ((key, _dumps(value)) for key, value in meta.items()))
    except sqlite3.OperationalError as error:  # as any file that cannot be written
        raise OSError(errno.EIO, str(error), str(target)) from None


def _fill(base: sqlite3.Connection, table: str, rows: Iterable[tuple[str, str | bytes]]) -> None:
    base.executemany(f"INSERT INTO {table} VALUES (?, ?)", sorted(rows))


def _readings(lexicon: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """A reading is a string, or an object of readings by part of speech (begins with a brace)."""
    return ((word, value if isinstance(value, str) else _dumps(value)) for word, value in lexicon.items())


def _pack(row: dict[str, float], number: dict[str, int]) -> bytes:
    """Tag numbers and weights. Weights have one decimal, so that tenths in 16 bits lose nothing."""
    packed = b"".join(struct.pack(WEIGHT, number[tag], round(w * WEIGHT_SCALE)) for tag, w in row.items())
    for (_, tenths), w in zip(struct.iter_unpack(WEIGHT, packed), row.values(), strict=True):
        if tenths / WEIGHT_SCALE != w:
            raise ValueError(f"weight {w} has more than one decimal")
    return packed


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _json(assets: Path, name: str) -> Any:
    raw = (assets / name).read_bytes()
    return json.loads(gzip.decompress(raw) if name.endswith(".gz") else raw)
