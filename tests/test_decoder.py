"""The native decoder against numpy, against ONNX Runtime with the same bundle, and against itself."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from edged import settings
from edged.bundle import Bundle
from edged.compiler.chattts.quantize import nearest
from edged.compiler.chattts.sampling import sampler
from edged.engine import decoder_index
from edged.engine.buffers import Arena
from edged.engine.decoder import DecoderEngine, open_library
from edged.errors import EngineError, ShapeExceeded
from edged.voices.chattts.data import Sampling
from edged.voices.chattts.generator import Generator
from edged.voices.chattts.voice import decoder_files, engine
from edged.voices.demand import interface
from tests import decoders
from tests.bundles import build_chattts

PIECE = 48
Make = Callable[..., Generator]


@pytest.fixture(scope="module", params=["int4", "int8"])
def bundle(
    request: pytest.FixtureRequest, tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Bundle:
    decoders.library("plain")  # skips without a compiler
    folder = tmp_path_factory.mktemp("decoder")
    return Bundle.load(build_chattts(folder / request.param, tiny_checkpoint, precision=request.param))


@pytest.fixture
def make(bundle: Bundle) -> Iterator[Make]:
    """Generators over the native decoder, of one bundle."""
    made: list[DecoderEngine] = []

    def one(threads: int = 2, level: str = "plain", slots: int = 0) -> Generator:
        files = decoder_files(bundle)
        assert files is not None
        inputs, outputs = interface(bundle, bundle.engine("gpt"), settings.Engine(slots=slots))
        built = decoders.library(level)
        made.append(
            DecoderEngine(
                built, files.index, files.weights, inputs, outputs, Arena(), name="gpt", threads=threads
            )
        )
        return Generator(made[-1], PIECE)

    yield one
    for native in made:
        native.close()


def start(generator: Generator, row: int, tokens: int, speaker: int = 0) -> None:
    """A row reads a prompt in pieces, in a voice of its own."""
    noise = np.random.default_rng(speaker)
    generator.seat(row, noise.standard_normal(generator.hidden_size).astype(np.float32), Sampling(top_p=0.9))
    ids = noise.integers(20, 400, (tokens, 1)).repeat(generator.codebooks, 1)
    read = 0
    while read < tokens:
        generator.draw(row, np.random.default_rng(tokens + read), True)
        read += generator.prompt(row, ids[read:], np.ones(tokens - read, np.int64))


def speak(generator: Generator, rows: list[int], steps: int = 24) -> tuple[NDArray[Any], NDArray[Any]]:
    """Each row reads a prompt of its own, then all draw. rows: a seed each, of words and noise. Codes
    [steps, rows, books] and hidden states."""
    for row, seed in enumerate(rows):
        start(generator, row, 20 + 7 * seed, seed)
    noises = [np.random.default_rng(50 + seed) for seed in rows]
    codes, hidden = [], []
    for step in range(steps):
        for row in range(len(rows)):
            generator.accept(row, step, step > 0)
            generator.draw(row, noises[row], True)
        generator.step(0, len(rows))
        codes.append(generator.codes[: len(rows)].copy())
        hidden.append(generator.hidden[: len(rows)].copy())
    return np.array(codes), np.array(hidden)


@pytest.mark.parametrize("level", decoders.NAMES)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("columns", "block"), [(768, 128), (3072, 128), (64, 64), (96, 32)])
def test_products_are_those_of_the_rounded_numbers(level: str, bits: int, columns: int, block: int) -> None:
    built, noise = decoders.library(level), np.random.default_rng(columns + bits)
    rows = 37  # not a multiple of anything
    blocks = nearest(noise.standard_normal((rows, columns)).astype(np.float32), bits, block)
    for tokens in (1, 2, 3, 4, 7):
        x = (noise.standard_normal((tokens, columns)) * 3).astype(np.float32)
        x[-1, :block] = 0  # a block without any values
        parts = x.reshape(tokens, -1, block)
        steps = np.abs(parts).max(-1, keepdims=True) / 127
        whole = np.rint(np.divide(parts, steps, out=np.zeros_like(parts), where=steps > 0))
        wanted = (whole * steps).reshape(x.shape).astype(np.float64) @ blocks.dense().T.astype(np.float64)
        found = decoders.multiply(built, blocks.packed(), np.ascontiguousarray(blocks.scales), bits, x)
        # A number half way between two steps may go either way: one step of one weight.
        assert np.abs(found - wanted).max() <= 0.005 * np.abs(wanted).max()


@pytest.mark.parametrize("level", decoders.NAMES)
def test_a_vector_has_the_same_product_alone_and_among_others(level: str) -> None:
    built, noise = decoders.library(level), np.random.default_rng(1)
    blocks = nearest(noise.standard_normal((50, 768)).astype(np.float32), 4, 128)
    codes, scales = blocks.packed(), np.ascontiguousarray(blocks.scales)
    x = noise.standard_normal((6, 768)).astype(np.float32)
    together = decoders.multiply(built, codes, scales, 4, x)
    for token in range(6):
        assert (decoders.multiply(built, codes, scales, 4, x[token : token + 1]) == together[token]).all()


@pytest.mark.parametrize("level", decoders.NAMES)
def test_draws_are_those_of_the_graph(level: str) -> None:
    built, noise = decoders.library(level), np.random.default_rng(2)
    tokens, end = 626, 625
    model = sampler(1, tokens, width=tokens, end=end, slots=1, adaptive=True).build()
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    alike = 0
    for _ in range(200):
        scores = (noise.standard_normal(tokens) * noise.uniform(0.5, 4)).astype(np.float32)
        rules = {
            "temperature": float(np.float32(noise.uniform(0.05, 1.5))),
            "top_p": float(np.float32(noise.uniform(0.05, 1.0))),
            "penalty": float(np.float32(noise.uniform(1.0, 1.5))),
            "top_k": int(noise.integers(1, 700)),
            "uniform": float(noise.random(dtype=np.float32)),
        }
        banned, greedy = int(noise.integers(2)), int(noise.integers(2))
        history = noise.integers(-1, tokens, 16)
        history[3:6] = noise.integers(0, 5)  # seen more than once
        feeds = {
            "scores": scores[None, None],
            "ban_end": np.array([banned]),
            "greedy": np.array([greedy]),
            "history": history[None, :, None],
            "uniform": np.array([[rules["uniform"]]], np.float32),
            "top_k": np.array([rules["top_k"]]),
            **{name: np.array([rules[name]], np.float32) for name in ("temperature", "top_p", "penalty")},
        }
        wanted = int(session.run(["codes"], feeds)[0][0, 0])
        found = decoders.draw(
            built, scores, tokens, history, ban=end if banned else -1, greedy=greedy, **rules
        )
        alike += found == wanted
    assert alike >= 198  # a draw on the border of two candidates may round to either


def test_a_banned_end_is_never_drawn_however_likely() -> None:
    scores = np.zeros(626, np.float32)
    scores[625] = 100.0
    free: dict[str, Any] = {
        "temperature": 0.1,
        "top_p": 0.1,
        "penalty": 1.0,
        "top_k": 3,
        "history": np.zeros(0, np.int64),
    }
    built = decoders.library("plain")
    for uniform in (0.0, 0.5, 0.9999999):
        assert decoders.draw(built, scores, 626, uniform=uniform, ban=625, greedy=0, **free) != 625
        assert decoders.draw(built, scores, 626, uniform=uniform, ban=-1, greedy=0, **free) == 625


def test_it_speaks_as_onnx_runtime_does_with_the_same_bundle(bundle: Bundle, make: Make) -> None:
    reference = Generator(engine(bundle, "gpt", settings.Engine(native=False), Arena()), PIECE)
    assert not isinstance(reference.engine, DecoderEngine)
    theirs, _ = speak(reference, [0, 1, 2])
    ours, _ = speak(make(), [0, 1, 2])
    # Until a first code differs, and then everything, as it should: the noise meets other probabilities.
    until = [int(np.argmin((theirs[:, n] == ours[:, n]).all(1))) or len(ours) for n in range(3)]
    assert max(until) == len(ours)
    assert min(until) >= 3
    reference.close()


def test_its_hidden_states_are_those_of_onnx_runtime(bundle: Bundle, make: Make) -> None:
    reference = Generator(engine(bundle, "gpt", settings.Engine(native=False), Arena()), PIECE)
    ours = make()
    apart = []
    for generator in (reference, ours):
        start(generator, 1, 70)
    for step in range(40):
        codes = reference.codes[1].copy()
        for generator in (reference, ours):
            generator.codes[1] = codes
            generator.accept(1, step, step > 0)
            generator.draw(1, np.random.default_rng(step), True)
            generator.step(1, 2)
        apart.append(
            np.linalg.norm(reference.hidden[1] - ours.hidden[1]) / np.linalg.norm(reference.hidden[1])
        )
    assert np.median(apart) < 0.02  # an input rounded the other way is 1 % of 8 bits
    assert (reference.lengths == ours.lengths).all()
    reference.close()


def test_words_of_the_refine_stage_are_those_of_onnx_runtime(bundle: Bundle, make: Make) -> None:
    reference = Generator(engine(bundle, "gpt", settings.Engine(native=False), Arena()), PIECE)
    words: list[list[int]] = []
    for generator in (reference, make()):
        start(generator, 0, 30)
        words.append([])
        for step in range(12):
            generator.accept_word(0, step > 0)
            generator.draw(0, np.random.default_rng(step), True)
            generator.refine(0, 1)
            words[-1].append(int(generator.codes[0, 0]))
            assert len(set(generator.codes[0].tolist())) == 1
    assert words[0][:3] == words[1][:3]
    reference.close()


def test_a_row_is_the_same_alone_beside_others_and_with_any_number_of_threads(make: Make) -> None:
    codes, hidden = speak(make(threads=1), [2])
    for threads in (1, 2, 3):
        generator = make(threads=threads)
        beside, states = speak(generator, [2, 0, 1, 3])
        assert (beside[:, 0] == codes[:, 0]).all()
        assert (states[:, 0] == hidden[:, 0]).all()


def test_a_prompt_is_the_same_in_pieces_and_whole(make: Make) -> None:
    generator = make()
    start(generator, 0, 45)
    whole = generator.hidden[0].copy()
    for piece in (1, 7, 20):
        generator.piece = piece
        start(generator, 0, 45)
        assert (generator.hidden[0] == whole).all()


def test_a_row_that_would_leave_the_cache_is_refused_and_nothing_written(make: Make) -> None:
    generator = make()
    start(generator, 0, 10)
    before = [cache.copy() for cache in generator.caches]
    for length in (generator.positions, -2):
        generator.lengths[0] = length
        with pytest.raises(ShapeExceeded, match="positions"):
            generator.step(0, 1)
    assert all((cache == kept).all() for cache, kept in zip(generator.caches, before, strict=True))


def test_nonsense_ids_do_not_leave_the_tables(make: Make) -> None:
    generator = make()
    start(generator, 0, 10)
    ids = np.full((4, generator.codebooks), 2**40)
    ids[1:3] = -5
    generator.prompt(0, ids, np.array([1, 1, 0, 0]))
    assert np.isfinite(generator.hidden[0]).all()


def test_its_threads_sleep_between_jobs_and_end_with_it(make: Make) -> None:
    generator = make(threads=3)
    speak(generator, [0], steps=3)
    names = [thread.name for thread in threading.enumerate()]
    assert {"edged-engine-1", "edged-engine-2"} <= set(names)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.4)
    assert time.process_time() - before < 0.1
    generator.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("edged-engine-") and t.is_alive()]


def test_more_threads_than_processors_still_get_done(make: Make) -> None:
    generator = make(threads=8)
    begin = time.monotonic()
    speak(generator, [0, 1], steps=10)
    assert time.monotonic() - begin < 20


def test_a_bundle_cut_short_is_an_error_not_a_crash(bundle: Bundle, tmp_path: Path) -> None:
    files = decoder_files(bundle)
    assert files is not None
    inputs, outputs = interface(bundle, bundle.engine("gpt"), settings.Engine())
    short = tmp_path / "short"
    short.write_bytes(files.weights.read_bytes()[:-100_000])

    def open_with(index: Path, weights: Path) -> None:
        DecoderEngine(decoders.library("plain"), index, weights, inputs, outputs, Arena(), name="gpt")

    with pytest.raises(EngineError, match="too short"):
        open_with(files.index, short)
    known = decoder_index.read(files.index)
    other = tmp_path / "index"
    without = {name: tensor for name, tensor in known.tensors.items() if name != "norm"}
    for changed, said in (
        (msgspec.structs.replace(known, format=99), "format 99"),
        (msgspec.structs.replace(known, tensors=without), "lacks 'norm'"),
        (
            msgspec.structs.replace(known, sizes=msgspec.structs.replace(known.sizes, positions=7)),
            "positions|cosine",
        ),
    ):
        decoder_index.write(other, changed)
        with pytest.raises(EngineError, match=said):
            open_with(other, files.weights)
    other.write_bytes(b"not an index")
    with pytest.raises(EngineError, match="index"):
        open_with(other, files.weights)
    with pytest.raises(EngineError):
        open_library(short)


def _damages(known: decoder_index.Index) -> Iterator[tuple[str, decoder_index.Index]]:
    """An index each that would lead the source out of its memory."""
    replace = msgspec.structs.replace
    for name in decoder_index.Sizes.__struct_fields__:
        if name not in ("epsilon", "text_width", "speaker_token", "end_text", "history", "positions"):
            for size in (0, -1, getattr(known.sizes, name) + 16, 2**24, 2**31, 2**62):
                yield f"{name} {size}", replace(known, sizes=replace(known.sizes, **{name: size}))
    for name in known.bits:
        for bits in (3, 12, 2**40):
            yield f"{name} {bits}", replace(known, bits={**known.bits, name: bits})
        yield f"no {name}", replace(known, bits={key: n for key, n in known.bits.items() if key != name})
    for name, tensor in known.tensors.items():
        others = {key: value for key, value in known.tensors.items() if key != name}
        yield f"no {name}", replace(known, tensors=others)
        for changed in (
            replace(tensor, shape=tensor.shape[1:]),
            replace(tensor, shape=(tensor.shape[0] + 1, *tensor.shape[1:])),
            replace(tensor, shape=(-tensor.shape[0], *tensor.shape[1:])),
            replace(tensor, shape=(2**40, *tensor.shape[1:])),
            replace(tensor, offset=2**62),
            replace(tensor, offset=-(2**40), data=b""),
            replace(tensor, dtype="object"),
            replace(tensor, dtype="no type"),
        ):
            yield f"{changed.shape} {changed.offset}", replace(known, tensors={**others, name: changed})


def test_a_damaged_index_is_an_error_before_memory_is_touched(bundle: Bundle, tmp_path: Path) -> None:
    files = decoder_files(bundle)
    assert files is not None
    inputs, outputs = interface(bundle, bundle.engine("gpt"), settings.Engine())
    known, other = decoder_index.read(files.index), tmp_path / "index"
    library, weights = decoders.library("plain"), files.weights

    def open_it() -> DecoderEngine:
        return DecoderEngine(library, other, weights, inputs, outputs, Arena(), name="gpt")

    for what, damaged in _damages(known):
        decoder_index.write(other, damaged)
        with pytest.raises(EngineError):
            raise AssertionError(f"loaded with {what}: {open_it()}")


def test_tensors_of_another_type_than_the_source_takes_are_refused(bundle: Bundle) -> None:
    files = decoder_files(bundle)
    assert files is not None
    inputs, outputs = interface(bundle, bundle.engine("gpt"), settings.Engine())
    for name in ("last", "history", "uniform", "past_v.1"):
        changed = [dataclasses.replace(spec, dtype="int16") if spec.name == name else spec for spec in inputs]
        with pytest.raises(EngineError, match=name):
            DecoderEngine(
                decoders.library("plain"), files.index, files.weights, changed, outputs, Arena(), name="gpt"
            )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-38])
def test_a_row_of_nonsense_draws_codes_and_leaves_the_others_alone(
    bundle: Bundle, make: Make, value: float
) -> None:
    files = decoder_files(bundle)
    assert files is not None
    speaker = decoder_index.read(files.index).sizes.speaker_token
    generator = make()
    codes, hidden = speak(generator, [1, 0], steps=8)
    rules = Sampling(top_k=1000, temperature=1e-4, penalty=10.0)
    generator.seat(2, np.full(generator.hidden_size, value, np.float32), rules)
    ids = np.full((3, generator.codebooks), speaker)
    generator.draw(2, np.random.default_rng(2), True)
    generator.prompt(2, ids, np.ones(3, np.int64))
    for row, seed in enumerate((1, 0)):
        start(generator, row, 20 + 7 * seed, seed)
    noises = [np.random.default_rng(50 + seed) for seed in (1, 0, 2)]
    for step in range(8):
        for row in range(3):
            generator.accept(row, step, step > 0)
            generator.draw(row, noises[row], True)
        generator.step(0, 3)
        assert generator.codes[2].min() >= 0
        assert generator.codes[2].max() < 625
        assert (generator.codes[:2] == codes[step]).all()
        assert (generator.hidden[:2] == hidden[step]).all()


def test_closing_waits_for_a_step_and_no_other_follows(make: Make) -> None:
    for pause in (0.0, 0.001, 0.003, 0.006):
        generator, ended = make(threads=3), []
        start(generator, 0, 20)

        def steps(generator: Generator = generator, ended: list[str] = ended) -> None:
            try:
                while True:
                    generator.step(0, 1)
            except (EngineError, ShapeExceeded) as error:
                ended.append(str(error))

        thread = threading.Thread(target=steps, daemon=True)
        thread.start()
        time.sleep(pause)
        generator.close()
        thread.join(30)
        assert ended
        with pytest.raises(EngineError, match="closed"):
            generator.engine.run()


def test_two_threads_on_one_processor_take_turns(make: Make) -> None:
    """A thread that spins for long at a barrier keeps the one it waits for from coming."""
    used = {}
    mine = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(mine)})
        for threads in (1, 2):
            generator = make(threads=threads)
            start(generator, 0, 20)
            begin = time.process_time()
            for _ in range(50):
                generator.step(0, 1)
            used[threads] = (time.process_time() - begin) / 50
    finally:
        os.sched_setaffinity(0, mine)
    assert used[2] < used[1] + 0.002  # 30 barriers, each of which could spin


def test_a_thread_that_cannot_start_is_an_error_and_the_others_end(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threading.Thread.start

    def start_some(thread: threading.Thread) -> None:
        if thread.name == "edged-engine-3":
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    with pytest.raises(EngineError, match="start new thread"):
        make(threads=4)
    assert not [t for t in threading.enumerate() if t.name.startswith("edged-engine-")]
