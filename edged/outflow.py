"""What was made of a job's utterances on its way to its sink: audio, silences and marks, in order.

Engine thread only; functions over an `Entry`, whose `pending` is the queue. Neighbours: the worker adds what
a voice made and pours it out; `audio.stretch` changes speed and pitch where the voice cannot; sinks take it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from edged.audio import stretch
from edged.job import AudioChunk, MarkReached, Params, Samples, Utterance
from edged.scheduler import Entry

# Chunks of silence of one job in one round, so that nobody waits for the whole of a long pause.
SILENT_CHUNKS = 8
UNCHANGED = f"speed and pitch stay the voice's own: {stretch.LIBRARY} is not there ({stretch.INSTALL})"
# Behind the last sentence that has come of an open job: what resamplers and encoders hold back is heard then.
REST_S = 0.05


@dataclass(slots=True)
class Silence:
    """samples: how many are left of it."""

    samples: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Told when everything before it was handed on."""

    name: str


def begin(entry: Entry, utterance: Utterance, rate: int) -> None:
    """What comes before the first samples of an utterance. rate: of the job's audio in Hz."""
    entry.job.starts.append(entry.job.timeline.audio_s)
    _add_silence(entry, utterance.lead_s, rate)
    entry.pending.extend(map(Mark, utterance.marks))


def stretched(
    entry: Entry, params: Params, controls: Container[str], rate: int, library: stretch.Library | None
) -> None:
    """An utterance is about to be made. params: how it is wanted; controls: of the voice, which does itself
    what they name. The rest is done here, or where there is no library the job is warned."""
    speed = 1.0 if "speed" in controls else params.speed
    if speed == 1.0 and params.pitch == 0.0:
        return
    if library is None:
        entry.job.warn(UNCHANGED)
        return
    entry.stretch = stretch.Stretcher(library, rate, speed, stretch.frequency_factor(params.pitch))


def add(
    entry: Entry,
    samples: Samples,
    most: int,
    gain: float,
    loudness_lufs: float | None = None,
    last: bool = False,
) -> None:
    """Copies samples out of the engine's buffers, in chunks of at most `most`. loudness_lufs: the voice's;
    last: of the utterance."""
    if entry.stretch is not None:
        samples = entry.stretch.feed(samples, last)
    entry.pending.extend(AudioChunk(one, loudness_lufs=loudness_lufs) for one in _copies(samples, most, gain))


def end(entry: Entry, utterance: Utterance, rate: int) -> None:
    """What comes behind the last samples of an utterance."""
    entry.pending.extend(map(Mark, utterance.marks_after))
    _add_silence(entry, utterance.pause_s, rate)
    if entry.job.open and entry.job.cursor >= len(entry.job.utterances):
        _add_silence(entry, REST_S, rate)


def pour(entry: Entry, rate: int, most: int) -> bool:
    """Hands on what is pending, in chunks of at most `most` samples; whether it stopped for the others only.

    A silence, which may be long and costs nothing to make, waits until the sink has room. Audio of an
    utterance that was begun does not: its length is bounded, and it is there already.
    """
    job, pending, silent = entry.job, entry.pending, 0
    while pending and not job.ended and job.sink is not None:
        first = pending[0]
        if isinstance(first, Silence):
            if silent == SILENT_CHUNKS or not job.sink.ready():
                return silent == SILENT_CHUNKS
            silent += 1
            size = min(first.samples, most)
            first.samples -= size
            if not first.samples:
                pending.popleft()
            _write(entry, AudioChunk(np.zeros(size, np.float32)), rate)
            continue
        pending.popleft()
        if isinstance(first, Mark):
            if entry.told:
                entry.told -= 1
            else:
                _tell(entry, first.name)
        else:
            _write(entry, first, rate)
    return False


def the_end(entry: Entry) -> AudioChunk:
    """The end of a job whose last audio was handed on before anybody knew."""
    return replace(_placed(entry, AudioChunk(np.zeros(0, np.float32))), last=True)


def send_back(entry: Entry, utterance: int, take: int) -> None:
    """The job goes on with that utterance once more; what was made and not handed on is forgotten."""
    job = entry.job
    job.cursor = min(utterance, job.cursor)
    if job.cursor < len(job.starts):
        job.timeline.audio_s = job.starts[job.cursor]
        del job.starts[job.cursor :]
    job.timeline.synthesized = 0.0
    entry.pending.clear()
    entry.take, entry.sounded, entry.finished = take, False, False
    entry.served = max(entry.served, job.cursor)
    before = job.utterances[: job.cursor]
    entry.told = max(0, len(job.marks) - sum(len(u.marks) + len(u.marks_after) for u in before))


def _add_silence(entry: Entry, seconds: float, rate: int) -> None:
    samples = round(seconds * rate)
    if samples > 0:
        entry.pending.append(Silence(samples))


def _copies(samples: Samples, most: int, gain: float) -> Iterator[Samples]:
    """The one place that copies samples, and that changes their loudness on the way."""
    for at in range(0, samples.size, most):
        piece = samples[at : at + most]
        yield piece.copy() if gain == 1.0 else piece * np.float32(gain)


def _tell(entry: Entry, mark: str) -> None:
    """Told with the audio, or by the loudspeaker when it is heard."""
    job = entry.job
    job.announce()
    if job.aloud and job.sink is not None:
        job.sink.write(_placed(entry, AudioChunk(np.zeros(0, np.float32), mark=mark)))
    else:
        job.tell(MarkReached(mark, job.timeline.audio_s))


def _write(entry: Entry, chunk: AudioChunk, rate: int) -> None:
    """One chunk; the last one when nothing can follow."""
    job = entry.job
    assert job.sink is not None
    job.announce()
    placed = _placed(entry, chunk)
    job.timeline.audio_s += chunk.samples.size / rate
    entry.finished = entry.exhausted
    if entry.finished:
        job.timeline.synthesized = monotonic()
    job.sink.write(replace(placed, last=entry.finished))


def _placed(entry: Entry, chunk: AudioChunk) -> AudioChunk:
    job = entry.job
    return replace(chunk, utterance=max(0, job.cursor - 1), take=entry.take, time_s=job.timeline.audio_s)
