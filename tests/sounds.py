"""Jobs and sounds for the audio tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from edged.job import AudioChunk, Job, Params, Priority, Samples, Sink
from edged.settings import ClientDefaults
from edged.speech.options import Wish, wish


def make_job(id: str = "1", **params: Any) -> Job:
    return Job(
        id=id,
        client=b"",
        client_id=f"c{id}",
        kind="speak",
        text="",
        voice="",
        params=Params(**params),
        priority=Priority.TEXT,
    )


def usual(job: Job) -> Wish:
    """What a job of its priority wishes of the loudspeaker where nobody says otherwise."""
    return wish(job.client, -1, ClientDefaults(priority=job.priority.name.lower()), ClientDefaults())  # type: ignore[arg-type]


def noise(seconds: float, rate: int, seed: int = 0, top_hz: float = 3_000.0) -> Samples:
    """Band-limited noise at full level to its very ends, so that a missing end is seen."""
    count = int(seconds * rate)
    spectrum = np.fft.rfft(np.random.default_rng(seed).standard_normal(count))
    spectrum[np.fft.rfftfreq(count, 1 / rate) > top_hz] = 0
    sound = np.fft.irfft(spectrum, count)
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)


def write_all(sink: Sink, samples: Samples, size: int, rate: int = 24_000) -> None:
    """The samples in chunks of `size`, the last one marked."""
    starts = list(range(0, len(samples), size)) or [0]
    for start in starts:
        piece = samples[start : start + size]
        sink.write(AudioChunk(piece, last=start == starts[-1], time_s=start / rate))
