"""From a recording to the prompt code of a voice, by the encoder of a bundle. CLI process only.

Neighbours: `edged voice enroll` calls; the graph is made by `encoder.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.engine.select import TENSORRT
from edged.errors import BadValue
from edged.voices.chattts import speakers
from edged.voices.chattts.reading import reader
from edged.voices.chattts.tokens import Tokens
from edged.voices.chattts.voice import engine, sample_limit

SHORTEST_S = 1.0  # less tells the model nothing about a voice
SAMPLES_A_CODE = 512
QUIET = 1e-3  # standard deviation; -60 dB: below it there is nothing to hear


def prompt_code(bundle: Bundle, audio: Path, text: str) -> str:
    """The prompt code of a recording in which `text` is said. Raises `BadValue` with the reason."""
    if not any(map(str.isalnum, text)):
        raise BadValue("--text is empty", "write what is said in the recording, word by word")
    if all(entry.name != "encoder" for entry in bundle.manifest.engines):
        own = "build the bundle with --with-encoder"
        other = "use one for onnxruntime, built --with-encoder: the prompt code that it prints fits both"
        hint = other if bundle.manifest.backend == TENSORRT else own
        raise BadValue(f"{bundle.path}: has no encoder for recordings", hint)
    rate = bundle.manifest.sample_rate
    samples = read(audio, rate)
    seconds = len(samples) / rate
    words = reader().read(text)
    said = len(Tokens(bundle.data_path("tokenizer")).speech(words).ids)
    longest = (sample_limit(bundle) - said) * SAMPLES_A_CODE / rate
    if longest < SHORTEST_S:
        raise BadValue(
            f"{bundle.path}: has no room for a recording", "build the bundle with more --positions"
        )
    if not SHORTEST_S <= seconds <= longest:
        raise BadValue(
            f"{audio}: {seconds:.1f} s long; this bundle takes {SHORTEST_S:.0f} to {longest:.1f} s",
            "cut the recording to 3 to 8 s of speech, and the text with it",
        )
    return speakers.encode_prompt(encode(bundle, samples))


def encode(bundle: Bundle, samples: NDArray[np.float32]) -> NDArray[np.int64]:
    """Audio codes [codebooks, steps] of samples at the bundle's rate."""
    encoder = engine(bundle, "encoder", settings.Engine(), Arena())
    try:
        most = encoder.inputs["audio"].shape[1]
        if len(samples) > most:
            raise BadValue(f"the recording is longer than {most / bundle.manifest.sample_rate:.0f} s")
        encoder.bind("audio", (1, len(samples)))[0] = samples
        frames = 1 + len(samples) // (SAMPLES_A_CODE // 2)
        codes = encoder.bind("codes", (1, encoder.outputs["codes"].shape[1], frames // 2))
        encoder.run()
        return np.asarray(codes[0].copy(), np.int64)
    finally:
        encoder.close()


def read(audio: Path, rate: int) -> NDArray[np.float32]:
    """A sound file as mono samples at `rate`."""
    import soundfile
    import soxr

    if not audio.is_file():
        raise BadValue(f"{audio}: is not a file", "give a WAV, FLAC, OGG or MP3 file")
    try:
        channels, own_rate = soundfile.read(str(audio), dtype="float32", always_2d=True)
    except (OSError, RuntimeError) as error:
        raise BadValue(f"{audio}: cannot be read: {error}", "give a WAV, FLAC, OGG or MP3 file") from error
    mono = channels.mean(axis=1)
    if not np.isfinite(mono).all() or float(np.std(mono)) < QUIET:
        raise BadValue(f"{audio}: holds no sound", "record again")
    return np.asarray(soxr.resample(mono, own_rate, rate) if own_rate != rate else mono, np.float32)
