"""What is measured with: checkpoint, bundles and texts for the ChatTTS benchmark.

Random weights end an utterance at random, or not before the cache is full. Copies of bundles that forbid an
ending before one step and cut after another give utterances of known length. Neighbour: `chattts.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.common import Say, varied
from edged.bundle import Bundle
from edged.bundle_write import describe, write_manifest
from edged.compiler import build
from edged.compiler.chattts.random_checkpoint import FULL, make_checkpoint
from edged.voices.chattts import data
from edged.voices.chattts.limits import CONTROLS
from edged.voices.chattts.tokens import Tokens

STEPS_A_SECOND = 24_000 / 512
SLOTS, POSITIONS = 4, 1024
LASTING = (240, 480)  # steps of an utterance: 5.1 to 10.2 s
SHORT = (0, 80)  # to 1.7 s: many jobs in little time, so that they begin and end all the time
SENTENCES_OF_A_STREAM = 4  # of at least 5.1 s: a stream of over 20 s
PROMPT_TOKENS = 40


def checkpoint(path: Path, say: Say) -> Path:
    """The checkpoint in that folder, made there (full size, random weights) if there is none."""
    if not (path / "asset").is_dir():
        say("making a random checkpoint of full size")
        make_checkpoint(path, FULL)
    return path


def bundle(folder: Path, source: Path, precision: str) -> Path:
    return build(
        "chattts",
        folder / precision,
        checkpoint=source,
        precision=precision,
        slots=SLOTS,
        positions=POSITIONS,
    )


def bounded(path: Path, out: Path, steps: tuple[int, int]) -> Path:
    """A copy of a bundle whose utterances take so many steps, at least and at most."""
    file = "data/sampling.json"
    shutil.copytree(path, out)  # no hard links: the runtime takes none for weights
    sampling = data.read(path / file, data.Sampling)
    data.write(out / file, msgspec.structs.replace(sampling, min_steps=steps[0]))
    digest, size = describe(out, file)
    manifest = Bundle.load(path, verify=False).manifest
    entries = tuple(
        msgspec.structs.replace(entry, sha256=digest, bytes=size) if entry.file == file else entry
        for entry in manifest.data
    )
    limits = manifest.limits | {"max_steps": steps[1]}
    write_manifest(out, msgspec.structs.replace(manifest, data=entries, limits=limits))
    return out


def spoken(count: int, seed: int) -> list[str]:
    """Sentences of usual length."""
    return list(varied(count, seed, shortest=8, longest=20))


def long_texts(count: int, seed: int) -> list[str]:
    """Texts of several sentences."""
    sentences: Iterator[str] = varied(count * SENTENCES_OF_A_STREAM, seed, shortest=8, longest=20)
    return [" ".join(next(sentences) for _ in range(SENTENCES_OF_A_STREAM)) for _ in range(count)]


def of_tokens(path: Path, wanted: int = PROMPT_TOKENS) -> str:
    """A sentence whose prompt has that many tokens in this bundle's tokenizer, or just below."""
    tokens = Tokens(Bundle.load(path, verify=False).data_path("tokenizer"))

    def length(words: Sequence[str]) -> int:
        return len(tokens.speech(" ".join(words) + ".").ids) + CONTROLS

    (line,) = varied(1, seed=5, shortest=2 * wanted, longest=2 * wanted)
    words = line.rstrip(".").split()
    while words and length(words) > wanted:
        words.pop()
    return " ".join(words) + "."
