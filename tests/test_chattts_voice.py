"""The ChatTTS family on a tiny bundle: rows beside each other, limits, the real worker, the real daemon."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.errors import BadSpeaker, BrokenSound, EmptySpeech, EngineError
from edged.job import AudioChunk, Draw, Job, JobState, Params, Utterance
from edged.text.prepare import prepare
from edged.voices.api import Voice
from edged.voices.chattts import data, speakers, windows
from edged.voices.chattts.sound import samples_of
from edged.voices.chattts.synth import RUNAWAY, ChatSynthesizer
from edged.voices.chattts.utterance import ChatUtterance
from edged.voices.chattts.voice import check_prompt
from edged.voices.load import open_bundle
from edged.worker import Worker
from tests.bundles import build_chattts
from tests.daemon import receive, receive_until, running, send
from tests.test_job import make_job

HIDDEN = 64
GENERATOR = np.random.default_rng(3)
ANNA = speakers.encode_speaker(GENERATOR.normal(0, 1, HIDDEN))
BERT = speakers.encode_speaker(GENERATOR.normal(0, 1, HIDDEN))
TEXT = "Hello world. The time is good."


@pytest.fixture(scope="module")
def bundle_path(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_chattts(
        tmp_path_factory.mktemp("bundles") / "chattts",
        tiny_checkpoint,
        speakers=(f"anna={ANNA}", f"bert={BERT}"),
        positions=256,
        slots=3,
    )


def opened(path: Path, **config: Any) -> list[Voice]:
    return open_bundle(Bundle.load(path), settings.Engine(**config), Arena())


@pytest.fixture(scope="module")
def voices(bundle_path: Path) -> Iterator[list[Voice]]:
    loaded = opened(bundle_path)
    for voice in loaded:
        voice.warm_up()
    yield loaded
    for voice in loaded:
        voice.close()


@pytest.fixture
def synth(voices: list[Voice]) -> Iterator[ChatSynthesizer]:
    """With the bundle's own sampling afterwards, whatever a test did to it."""
    synthesizer = voices[0].synthesizer
    assert isinstance(synthesizer, ChatSynthesizer)
    before = synthesizer._sampling
    yield synthesizer
    synthesizer._sampling = before
    assert synthesizer._sound.free == synthesizer.max_batch, "a stream was left open"
    assert not synthesizer._seated


@dataclass
class Spoken:
    """What one utterance gave: its samples, its codes, and the steps it took to get them."""

    samples: list[float] = field(default_factory=list)
    warning: str = ""
    steps: int = 0


def speak(synth: ChatSynthesizer, *wanted: tuple[Utterance, int, int]) -> list[Spoken]:
    """Speaks utterances (utterance, seed, step to begin at) beside each other."""
    results = [Spoken() for _ in wanted]
    live: dict[int, Any] = {}
    waiting = dict(enumerate(wanted))
    clock = 0
    while live or waiting:
        for number, (utterance, seed, begin) in list(waiting.items()):
            if begin <= clock:
                live[number] = synth.open(utterance, Params(seed=seed))
                del waiting[number]
        numbers = list(live)
        for number, piece in zip(numbers, synth.step([live[n] for n in numbers]), strict=True):
            results[number].steps += 1
            assert piece.error is None
            results[number].samples += piece.samples.tolist()
            if piece.last:
                results[number].warning = piece.warning
                synth.close(live.pop(number))
        clock += 1
    return results


def utterance(voices: list[Voice], text: str = TEXT, speaker: int = 0, index: int = 0) -> Utterance:
    prepared = list(prepare(text, voices[speaker].frontend))
    first = prepared[0]
    assert isinstance(first, ChatUtterance)
    return replace(first, index=index, speaker=speaker)


def test_all_voices_share_one_synthesizer(voices: list[Voice]) -> None:
    assert [voice.card.name for voice in voices] == ["anna", "bert"]
    assert voices[0].synthesizer is voices[1].synthesizer
    assert voices[0].synthesizer.max_batch == 3


def test_it_speaks_as_many_samples_as_its_steps_make(voices: list[Voice], synth: ChatSynthesizer) -> None:
    (spoken,) = speak(synth, (utterance(voices), 1, 0))
    assert len(spoken.samples) in {samples_of(n) for n in range(1, synth.max_steps + 1)}
    assert np.isfinite(spoken.samples).all()
    assert np.abs(spoken.samples).max() > 1e-4


def test_seed_index_and_speaker_each_change_the_result(voices: list[Voice], synth: ChatSynthesizer) -> None:
    plain = speak(synth, (utterance(voices), 1, 0))[0].samples
    assert speak(synth, (utterance(voices), 1, 0))[0].samples == plain
    for changed, seed in (
        (utterance(voices), 2),
        (utterance(voices, index=1), 1),
        (utterance(voices, speaker=1), 1),
    ):
        assert speak(synth, (changed, seed, 0))[0].samples != plain


def test_beside_others_it_says_the_same(voices: list[Voice], synth: ChatSynthesizer) -> None:
    """Rows of different lengths, begun at different times, of different speakers, moved when one ends."""
    texts = (TEXT, "The morning speech, there is one word.", "Thank you.", "What time is it, please?")
    wanted = [(utterance(voices, text, n % 2), 10 + n, 0) for n, text in enumerate(texts)]
    alone = [speak(synth, one)[0] for one in wanted]
    for begins in ((0, 0, 0), (0, 3, 9), (7, 0, 2)):
        together = speak(synth, *[(u, s, b) for (u, s, _), b in zip(wanted[:3], begins, strict=True)])
        for one, other in zip(alone[:3], together, strict=True):
            assert len(one.samples) == len(other.samples), begins
            np.testing.assert_allclose(one.samples, other.samples, atol=1e-4)
    first = min(alone[:3], key=lambda spoken: spoken.steps)
    late = speak(synth, *wanted[:3], (*wanted[3][:2], first.steps + 4))[3]
    np.testing.assert_allclose(late.samples, alone[3].samples, atol=1e-4)


def test_a_stream_that_is_passed_over_is_not_changed(voices: list[Voice], synth: ChatSynthesizer) -> None:
    alone = [speak(synth, (utterance(voices), seed, 0))[0].samples for seed in (1, 2, 3)]
    streams = [synth.open(utterance(voices), Params(seed=seed)) for seed in (1, 2, 3)]
    samples: list[list[float]] = [[], [], []]
    live = [0, 1, 2]
    clock = 0
    while live:
        chosen = [n for n in live if (clock + n) % 3] or live[:]
        for number, piece in zip(chosen, synth.step([streams[n] for n in chosen]), strict=True):
            samples[number] += piece.samples.tolist()
            if piece.last:
                synth.close(streams[number])
                live.remove(number)
        clock += 1
    for number in range(3):
        np.testing.assert_allclose(samples[number], alone[number], atol=1e-4)


def test_a_prompt_is_read_in_pieces_and_gives_the_same(voices: list[Voice], synth: ChatSynthesizer) -> None:
    whole = speak(synth, (utterance(voices), 5, 0))[0]
    piece = synth._generator.piece
    try:
        synth._generator.piece = 3
        parts = speak(synth, (utterance(voices), 5, 0))[0]
    finally:
        synth._generator.piece = piece
    assert parts.steps > whole.steps
    np.testing.assert_allclose(parts.samples, whole.samples, atol=1e-4)


def test_closing_early_frees_the_slot(voices: list[Voice], synth: ChatSynthesizer) -> None:
    alone = speak(synth, (utterance(voices), 8, 0))[0].samples
    for stop_after in (0, 1, 5):
        streams = [synth.open(utterance(voices), Params(seed=n)) for n in range(3)]
        with pytest.raises(EngineError, match="slots"):
            synth.open(utterance(voices), Params())
        for _ in range(stop_after):
            synth.step(streams)
        for stream in streams:
            synth.close(stream)
            synth.close(stream)
        assert speak(synth, (utterance(voices), 8, 0))[0].samples == alone


def test_a_runaway_stops_at_the_limit_with_a_warning(voices: list[Voice], synth: ChatSynthesizer) -> None:
    synth._sampling = data.Sampling(min_steps=10_000)
    (spoken,) = speak(synth, (utterance(voices), 1, 0))
    assert spoken.warning == RUNAWAY
    assert len(spoken.samples) == samples_of(synth.max_steps)


def test_an_ending_before_the_first_sound_is_drawn_again_then_an_error(
    voices: list[Voice], synth: ChatSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = speak(synth, (utterance(voices), 1, 0))[0].samples
    generator = synth._generator
    endings = 0
    run = generator.prompt

    def ending(row: int, ids: Any, text: Any, refine: bool = False) -> int:
        nonlocal endings
        count = run(row, ids, text, refine)
        if endings:
            endings -= 1
            generator.ended[row] = 1
        return count

    monkeypatch.setattr(generator, "prompt", ending)
    endings = 3
    again = speak(synth, (utterance(voices), 1, 0))[0]
    assert again.samples != expected, "the noise must be fresh"
    endings = 1000
    beside = synth.open(utterance(voices), Params(seed=2))
    failing = synth.open(utterance(voices), Params(seed=1))
    errors = []
    for _ in range(60):
        errors += [p.error for p in synth.step([failing]) if p.error is not None]
        if errors:
            break
    assert isinstance(errors[0], EmptySpeech)
    synth.close(failing)
    synth.close(beside)


def test_sound_leaves_while_it_speaks(voices: list[Voice], synth: ChatSynthesizer) -> None:
    """Chunk by chunk, each as soon as its window is drawn; a slot is free at any moment."""
    synth._sampling = data.Sampling(min_steps=10_000)
    first = windows.CHUNKS[0] + windows.FIRST_AHEAD  # steps, the first one drawn while the prompt is read
    stream = synth.open(utterance(voices), Params(seed=1))
    sizes = [synth.step([stream])[0].samples.size for _ in range(100)]
    synth.close(stream)
    chunks = [size // 512 for size in sizes if size]
    assert sizes.index(512 * chunks[0]) == first - 1
    assert len(chunks) >= 4
    assert chunks == list(windows.CHUNKS[: len(chunks)])


def test_a_prompt_waits_for_who_has_heard_one_chunk(voices: list[Voice], synth: ChatSynthesizer) -> None:
    synth._sampling = data.Sampling(min_steps=10_000)
    early = synth.open(utterance(voices), Params(seed=1))
    while not synth.step([early])[0].samples.size:
        pass
    late = synth.open(utterance(voices), Params(seed=2))
    while not synth.step([early, late])[0].samples.size:
        assert late.read == 0  # type: ignore[attr-defined]
    synth.step([early, late])
    assert late.read > 0  # type: ignore[attr-defined]
    for stream in (early, late):
        synth.close(stream)


def test_broken_sound_fails_its_utterance_only(
    voices: list[Voice], synth: ChatSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = speak(synth, (utterance(voices), 1, 0))[0].samples
    take = synth._sound.take
    good = synth.open(utterance(voices), Params(seed=1))
    bad = synth.open(utterance(voices), Params(seed=2))

    def spoil(track: Any, source: Any, row: int) -> None:
        if track is bad.track and track.steps == 3:  # type: ignore[attr-defined]
            source.row("hidden", row)[:] = np.nan
        take(track, source, row)

    monkeypatch.setattr(synth._sound, "take", spoil)
    found: list[float] = []
    errors = []
    live = [good, bad]
    while live:
        for stream, piece in zip(live[:], synth.step(live), strict=True):
            if stream is good:
                found += piece.samples.tolist()
            elif piece.error is not None:
                errors.append(piece.error)
            if piece.last:
                synth.close(stream)
                live.remove(stream)
    assert [type(error) for error in errors] == [BrokenSound]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_no_step_allocates_much(voices: list[Voice], synth: ChatSynthesizer) -> None:
    synth._sampling = data.Sampling(min_steps=10_000)
    streams = [synth.open(utterance(voices), Params(seed=n)) for n in range(3)]
    for _ in range(8):
        synth.step(streams)
    tracemalloc.start()
    try:
        for _ in range(40):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            synth.step(streams)
            assert tracemalloc.get_traced_memory()[1] - before < 64 << 10
    finally:
        tracemalloc.stop()
        for stream in streams:
            synth.close(stream)


def test_a_recording_as_prompt_changes_the_voice(bundle_path: Path, tmp_path: Path) -> None:
    from edged.compiler.chattts import people

    codes = GENERATOR.integers(0, 625, (4, 20))
    copy = tmp_path / "copy"
    import shutil

    shutil.copytree(bundle_path, copy)
    new = people.person("carla", prompt=speakers.encode_prompt(codes), text="good morning [Ptts]")
    people.add(Bundle.load(copy), new)
    loaded = opened(copy)
    try:
        carla = loaded[2]
        (first, *_) = prepare(TEXT, carla.frontend)
        synthesizer = carla.synthesizer
        assert isinstance(synthesizer, ChatSynthesizer)
        spoken = speak(synthesizer, (first, 1, 0))[0].samples
        same_text = ChatUtterance(0, first.symbols, 0.0, 0)
        assert speak(synthesizer, (same_text, 1, 0))[0].samples != spoken
        bundle = Bundle.load(copy)
        with pytest.raises(BadSpeaker, match="enroll a shorter recording"):
            check_prompt(bundle, "carla", bundle.limit("max_prompt"))
    finally:
        for voice in loaded:
            voice.close()


# -- in the worker ------------------------------------------------------------------------------


class Collector:
    """A sink that keeps everything and ends its job."""

    def __init__(self) -> None:
        self.chunks: list[AudioChunk] = []
        self.job: Job | None = None
        self.ended = threading.Event()

    def ready(self) -> bool:
        return True

    def write(self, chunk: AudioChunk) -> None:
        self.chunks.append(chunk)
        if chunk.last and self.job is not None:
            self.job.done()
            self.ended.set()

    def abort(self) -> None:
        self.ended.set()

    @property
    def samples(self) -> np.ndarray[Any, Any]:
        return np.concatenate([np.zeros(0, np.float32), *(chunk.samples for chunk in self.chunks)])


@pytest.fixture
def worker(voices: list[Voice]) -> Iterator[Worker]:
    crashes: list[BaseException] = []
    made = Worker({voice.card.name: voice for voice in voices}, 0.25, crashes.append)
    made.start()
    yield made
    assert made.stop(5.0)
    assert not crashes


def submit(worker: Worker, voice: Voice, text: str, seed: int) -> tuple[Job, Collector]:
    sink = Collector()
    job = make_job(voice=voice.card.name, sink=sink, params=Params(seed=seed))
    sink.job = job
    job.utterances = list(prepare(text, voice.frontend))
    job.prepared_all = True
    worker.submit(job)
    return job, sink


def test_jobs_of_two_voices_share_the_steps(worker: Worker, voices: list[Voice]) -> None:
    wanted = [(voices[n % 2], n) for n in range(5)]  # more jobs than slots
    alone = []
    for voice, seed in wanted:
        job, sink = submit(worker, voice, TEXT, seed)
        assert sink.ended.wait(30)
        assert job.state is JobState.DONE
        alone.append(sink.samples)
    steps = worker.meter.steps
    together = [submit(worker, voice, TEXT, seed) for voice, seed in wanted]
    for (job, sink), expected in zip(together, alone, strict=True):
        assert sink.ended.wait(30)
        assert job.state is JobState.DONE
        assert sink.chunks[-1].last
        np.testing.assert_allclose(sink.samples, expected, atol=1e-4)
    assert worker.meter.steps - steps < steps * 0.8, "jobs beside each other need fewer steps"


def test_each_language_is_drawn_as_the_job_asks_and_the_same_every_time(
    worker: Worker, voices: list[Voice]
) -> None:
    voice = voices[0]

    def spoken(**draws: Draw) -> tuple[Job, Collector]:
        """Utterances of both languages in turn, as the preparation of a text would make them."""
        sink = Collector()
        params = Params(seed=4, languages=draws)
        job = make_job(voice=voice.card.name, sink=sink, params=params)
        job.utterances = [
            replace(utterance(voices, index=n), params=params.of_language(language), pause_s=0.1)
            for n, language in enumerate(("en", "zh", "en", "zh"))
        ]
        sink.job, job.prepared_all = job, True
        worker.submit(job)
        return job, sink

    def sentences(made: tuple[Job, Collector]) -> list[Any]:
        job, sink = made
        assert sink.ended.wait(60)
        assert job.state is JobState.DONE
        pauses = [n for n, chunk in enumerate(sink.chunks) if not chunk.samples.any()]
        assert len(pauses) == 4
        starts = [0, *(n + 1 for n in pauses)]
        cut = [sink.chunks[a:b] for a, b in zip(starts, pauses, strict=False)]
        return [np.concatenate([chunk.samples for chunk in chunks]) for chunks in cut]

    cold, hot = Draw(temperature=0.01, top_k=1), Draw(temperature=5.0, top_p=1.0, top_k=600)
    plain = sentences(spoken())
    both = [sentences(made) for made in [spoken(zh=cold, en=hot) for _ in range(2)]]  # beside each other
    chinese = sentences(spoken(zh=cold))
    assert all(alike(a, b) for a, b in zip(*both, strict=True))
    assert [alike(a, b) for a, b in zip(chinese, plain, strict=True)] == [True, False] * 2
    assert [alike(a, b) for a, b in zip(both[0], chinese, strict=True)] == [False, True] * 2


def alike(one: Any, other: Any) -> bool:
    return len(one) == len(other) and np.allclose(one, other, atol=1e-4)


def test_a_cancelled_job_frees_its_slot_at_once(worker: Worker, voices: list[Voice], synth: Any) -> None:
    synth._sampling = data.Sampling(min_steps=10_000)
    jobs = [submit(worker, voices[0], TEXT * 20, n)[0] for n in range(3)]
    while worker.meter.steps < 10:
        time.sleep(0.005)
    for job in jobs:
        job.cancel()
    worker.wake()
    synth._sampling = data.Sampling()
    job, sink = submit(worker, voices[1], "Thank you.", 1)
    assert sink.ended.wait(20)
    assert job.state is JobState.DONE


def test_one_failing_job_leaves_the_others_alone(
    worker: Worker, voices: list[Voice], synth: ChatSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = synth._retry

    def take(stream: Any, fed: bool, normal: Any = synth._take) -> None:
        if stream.noise.bit_generator.seed_seq.entropy[0] == 99 and not stream.track.steps:
            fail(stream)
        else:
            normal(stream, fed)

    monkeypatch.setattr(synth, "_take", take)
    good, good_sink = submit(worker, voices[0], TEXT, 1)
    bad, bad_sink = submit(worker, voices[0], TEXT, 99)
    assert good_sink.ended.wait(30)
    assert bad_sink.ended.wait(30)
    assert (good.state, bad.state) == (JobState.DONE, JobState.FAILED)
    assert bad.error is not None
    assert bad.error.code == "empty_speech"


# -- in the daemon ------------------------------------------------------------------------------


def test_the_daemon_speaks_and_cancels(bundle_path: Path) -> None:
    with running(bundle_path) as daemon, daemon.socket() as socket:
        listed = daemon.request({"op": "voices"})["voices"]
        assert [(v["name"], v["licence"]) for v in listed] == [
            ("anna", "CC-BY-NC-4.0"),
            ("bert", "CC-BY-NC-4.0"),
        ]
        alone = [
            daemon.request(
                {"op": "synthesize", "text": TEXT, "voice": name, "seed": 4, "format": "pcm_s16le"}
            )
            for name in ("anna", "bert")
        ]
        assert [reply["event"] for reply in alone] == ["done", "done"]
        for name in ("anna", "bert"):
            send(
                socket,
                op="synthesize",
                text=TEXT,
                voice=name,
                seed=4,
                format="pcm_s16le",
                id=name,
                reply="final",
            )
        both = {reply["id"]: reply for reply in (receive(socket) for _ in range(2))}
        for reply, name in zip(alone, ("anna", "bert"), strict=True):
            assert len(both[name]["audio_bytes"]) == len(reply["audio_bytes"])
        send(
            socket,
            op="synthesize",
            text=TEXT,
            voice="anna",
            seed=4,
            format="pcm_s16le",
            id="stream",
            reply="events",
            stream=True,
        )
        events = receive_until(socket, "done")
        streamed = b"".join(e["audio_bytes"] for e in events if e["event"] == "audio")
        assert streamed == alone[0]["audio_bytes"], "the same audio, streamed or whole"
        send(socket, op="synthesize", text=TEXT * 100, voice="anna", id="long", reply="events", stream=True)
        receive_until(socket, "started")
        send(socket, op="cancel", target="long", id="c")
        assert receive_until(socket, "cancelled", "done")[-1]["event"] == "cancelled"
        assert daemon.request({"op": "synthesize", "text": TEXT})["event"] == "done"
