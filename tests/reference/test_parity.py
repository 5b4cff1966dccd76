"""The graphs against the reference package, live and at full size. Skipped where it is not installed.

    PYTHONPATH=. python -m pytest tests/reference -m reference

with a Python that has the reference (see live.INSTALL) and edged[build,dev]. It takes minutes and some 6 GB
of memory. EDGED_CHECKPOINT names a checkpoint folder to use; without it, a random one of full size is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.reference import live

if reason := live.available():
    pytest.skip(reason, allow_module_level=True)
pytestmark = [pytest.mark.reference, pytest.mark.timeout(1800)]

STEPS = 200
LOGITS = 1e-3
MEL = 1e-3
PROBABILITY = 1e-6
SNR_DB = 60.0
DIALECTS = ("ort", "standard")
SPOKEN = (
    "[Stts][spk_emb][speed_5]hello world, this is the voice. 你好，今天天气很好！我们去公园[Ptts]",
    "[Stts][spk_emb][speed_2]good morning[uv_break]你好[laugh][Ptts]",
    "[Stts][empty_spk]time[Ptts]",
)
REFINED = "[Sbreak]thank you 我们今天说话[Pbreak][oral_2][laugh_0][break_6]"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from edged.compiler.chattts.random_checkpoint import FULL, make_checkpoint

    if given := os.environ.get("EDGED_CHECKPOINT"):
        return Path(given)
    return make_checkpoint(tmp_path_factory.mktemp("checkpoint") / "full", FULL)


@pytest.fixture(scope="module")
def reference(full: Path) -> live.Reference:
    return live.load(full)


@pytest.fixture(scope="module")
def checkpoint(full: Path) -> Iterator[Any]:
    from edged.compiler.chattts.checkpoint import Checkpoint

    with Checkpoint.open(full) as opened:
        yield opened


@pytest.fixture(scope="module")
def built(checkpoint: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Builds a graph once for all tests of this file."""
    from edged.compiler.chattts.encoder import build_encoder
    from edged.compiler.chattts.gpt import build_gpt
    from edged.compiler.chattts.vocoder import build_code_vocoder, build_vocoder

    folder = tmp_path_factory.mktemp("graphs")
    makers: dict[str, Any] = {
        "gpt": build_gpt,
        "vocoder": build_vocoder,
        "codes": build_code_vocoder,
        "encoder": build_encoder,
    }

    def build(kind: str, dialect: str, **options: Any) -> Path:
        path = folder / ("-".join([kind, dialect, *map(str, options.values())]) + ".onnx")
        if not path.exists():
            makers[kind](checkpoint, path, dialect=dialect, debug=True, **options)
        return path

    return build


@pytest.fixture(scope="module", params=DIALECTS)
def gpt(request: pytest.FixtureRequest, built: Callable[..., Path], checkpoint: Any) -> Any:
    from tests import chattts_graphs

    return chattts_graphs.Gpt(built("gpt", request.param, positions=256), checkpoint.sizes, 256)


@pytest.fixture(scope="module")
def speakers(reference: live.Reference) -> NDArray[np.float32]:
    generator = np.random.default_rng(7)
    return generator.normal(0, 1, (len(SPOKEN), reference.sizes.hidden)).astype(np.float32)


@pytest.fixture(scope="module")
def spoken(reference: live.Reference, speakers: NDArray[np.float32]) -> list[dict[str, Any]]:
    """What the reference decodes greedily for each text alone."""
    return [_expected(reference, [text], speakers[n : n + 1], STEPS)[0] for n, text in enumerate(SPOKEN)]


def _expected(
    reference: live.Reference, texts: list[str], given: Any, steps: int, **options: Any
) -> list[dict[str, Any]]:
    result, logits = reference.greedy(texts, given, steps=steps, **options)
    _, ids, attention = reference.embeddings(texts, None, options.get("prompt"))
    groups = len(logits[0]) // len(texts)
    return [
        {
            "ids": ids[row][attention[row].bool()].numpy(),
            "tokens": result.ids[row].numpy().reshape(steps, -1),
            "hidden": result.hiddens[row].numpy(),
            "logits": np.stack([step.numpy()[row * groups : (row + 1) * groups] for step in logits]),
        }
        for row in range(len(texts))
    ]


def _close(found: list[dict[str, Any]], wanted: dict[str, Any], at: int = 0) -> None:
    codes = np.stack([step["codes"][at] for step in found])[:, : wanted["tokens"].shape[1]]
    assert np.array_equal(codes, wanted["tokens"])
    for name in ("hidden", "logits"):
        values = np.stack([step[name][at] for step in found])
        error = float(np.abs(values - wanted[name]).max())
        print(f"{name}: largest error {error:.2e}")
        assert error <= LOGITS


def _prompt(wanted: dict[str, Any], audio: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    text = np.ones(len(wanted["ids"]), np.int64)
    text[len(text) - audio :] = 0
    return wanted["ids"], text


# -- the language model ---------------------------------------------------------------------------


def test_greedy_decoding(gpt: Any, spoken: list[dict[str, Any]], speakers: NDArray[np.float32]) -> None:
    from tests.chattts_graphs import greedy

    for number, wanted in enumerate(spoken[:2]):
        _close(greedy(gpt, [_prompt(wanted)], speakers[number : number + 1], STEPS), wanted)


def test_rows_of_different_lengths(
    gpt: Any, spoken: list[dict[str, Any]], speakers: NDArray[np.float32]
) -> None:
    from tests.chattts_graphs import greedy

    found = greedy(gpt, [_prompt(wanted) for wanted in spoken], speakers, STEPS)
    for number, wanted in enumerate(spoken):
        _close(found, wanted, at=number)


def test_an_audio_prompt(gpt: Any, reference: live.Reference, speakers: NDArray[np.float32]) -> None:
    import torch

    from tests.chattts_graphs import greedy

    prompt = torch.from_numpy(np.random.default_rng(8).integers(0, 625, (4, 30)))
    (wanted,) = _expected(reference, [SPOKEN[0]], speakers[:1], 40, prompt=prompt)
    _close(greedy(gpt, [_prompt(wanted, audio=30)], speakers[:1], 40), wanted)


def test_refining_text(gpt: Any, reference: live.Reference) -> None:
    from tests.chattts_graphs import greedy

    (wanted,) = _expected(reference, [REFINED], None, 60, refine=True)
    _close(greedy(gpt, [_prompt(wanted)], None, 60, refine=True), wanted)


@pytest.mark.parametrize("adaptive", [True, False])
def test_sampling_probabilities(adaptive: bool) -> None:
    import onnxruntime as ort
    import torch
    from ChatTTS.model import gen_logits

    from edged.compiler.chattts.sampling import sampler

    live.stand_in()
    model = sampler(4, 626, width=626, end=625, adaptive=adaptive).build()
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    generator = np.random.default_rng(9)
    worst = 0.0
    for number in range(300):
        scores = generator.normal(0, generator.choice([0.5, 2.0, 6.0]), (1, 4, 626)).astype(np.float32)
        count = int(generator.integers(0, 17))
        history = np.full((1, 16, 4), -1, np.int64)
        likely = np.argsort(scores[0])[:, -12:]
        for book in range(4):
            history[0, 16 - count :, book] = generator.choice(likely[book], count)
        temperature, top_p = generator.uniform(0.1, 1.5), generator.uniform(0.01, 1.0)
        top_k, penalty = int(generator.integers(1, 627)), float(generator.uniform(0.7, 2.0))
        temperature, top_p, penalty = (float(np.float32(v)) for v in (temperature, top_p, penalty))
        ban = number % 2
        warpers, processors = gen_logits(num_code=625, top_P=top_p, top_K=top_k, repetition_penalty=penalty)
        logits = torch.from_numpy(scores[0].copy()) / temperature
        seen = torch.from_numpy(history[0, 16 - count :].T.copy())
        for step in (*processors, *warpers):
            logits = step(seen, logits)
        if ban:
            logits[:, 625] = -torch.inf
        feeds = {
            "scores": scores,
            "temperature": np.float32([temperature]),
            "top_p": np.float32([top_p]),
            "top_k": np.int64([top_k]),
            "penalty": np.float32([penalty]),
            "ban_end": np.int64([ban]),
            "uniform": np.zeros((1, 4), np.float32),
            "greedy": np.int64([0]),
            "history": history,
        }
        (probs,) = session.run(["probs"], feeds)
        error = float(np.abs(probs[0] - torch.softmax(logits, -1).numpy()).max())
        assert error <= PROBABILITY, (number, temperature, top_p, top_k, penalty, count)
        worst = max(worst, error)
    print(f"largest error {worst:.2e}")


# -- between codes and audio ----------------------------------------------------------------------


def _same_sound(found: dict[str, Any], reference: live.Reference, mel: Any) -> None:
    from tests.chattts_graphs import snr_db

    error = float(np.abs(found["mel"] - mel.numpy()).max())
    snr = snr_db(reference.samples(mel).numpy(), found["samples"])
    print(f"mel: largest error {error:.2e}; samples: {snr:.1f} dB")
    assert error <= MEL
    assert snr >= SNR_DB


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("steps", [1, 7, STEPS])
def test_samples_of_hidden_states(
    built: Any, reference: live.Reference, spoken: list[dict[str, Any]], dialect: str, steps: int
) -> None:
    import torch

    from tests.chattts_graphs import run

    hidden = spoken[0]["hidden"][:steps]
    mel = reference.decoder(torch.from_numpy(hidden.T[None].copy()))
    _same_sound(run(built("vocoder", dialect, steps=256), hidden=hidden[None]), reference, mel)


def _rule() -> str:
    installed = tuple(map(int, version("vector_quantize_pytorch").split(".")[:2]))
    return "tanh" if installed < (1, 20) else "symmetric"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_samples_of_codes(built: Any, reference: live.Reference, dialect: str) -> None:
    import torch

    from tests.chattts_graphs import run

    codes = np.random.default_rng(11).integers(0, 625, (1, 4, 100))
    mel = reference.dvae(torch.from_numpy(codes))
    path = built("codes", dialect, steps=256, rule=_rule())
    _same_sound(run(path, codes=codes.transpose(0, 2, 1)), reference, mel)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_codes_of_audio(built: Any, reference: live.Reference, dialect: str) -> None:
    from tests.chattts_graphs import run

    generator = np.random.default_rng(12)
    time = np.arange(24_000 * 25) / 24_000
    voiced = np.sin(2 * np.pi * 130 * time + 8 * np.sin(3 * time)) * (0.4 + 0.3 * np.sin(11 * time))
    audio = (0.5 * voiced + generator.normal(0, 0.03, len(time)) * (time % 2)).astype(np.float32)
    wanted = reference.dvae.sample_audio(audio.copy()).numpy()
    path = built("encoder", dialect, seconds=30, rule=_rule())
    found = run(path, audio=audio[None])["codes"][0]
    same = float((found == wanted).all(axis=0).mean())
    print(f"{wanted.shape[1]} steps, {same:.4%} identical, {len(np.unique(wanted))} different codes")
    assert same >= 0.999


# -- text and speakers ----------------------------------------------------------------------------


def test_tokens(full: Path, reference: live.Reference) -> None:
    from tokenizers import Tokenizer

    from tests.reference.make_golden import TEXTS

    ours = Tokenizer.from_file(str(full / "asset" / "tokenizer" / "tokenizer.json"))
    theirs = reference.tokenizer._tokenizer
    assert theirs.is_fast
    assert len(theirs) == reference.sizes.text_tokens
    for text in TEXTS:
        assert ours.encode(text, add_special_tokens=False).ids == theirs.encode(
            text, add_special_tokens=False
        )


def test_speaker_strings(reference: live.Reference) -> None:
    import pybase16384
    import torch

    from edged.voices.chattts import speakers as ours

    hidden = reference.sizes.hidden
    generator = np.random.default_rng(13)
    both = np.concatenate([generator.uniform(0.2, 2, hidden), generator.normal(0, 1, hidden)])
    statistics = pybase16384.encode_to_string(both.astype(np.float16).tobytes())
    theirs = reference.speaker(hidden, statistics)
    for seed in range(40):
        torch.manual_seed(seed)
        code = theirs.sample_random()
        vector = ours.decode_speaker(code, hidden)
        assert np.array_equal(vector, theirs._decode(code))
        assert ours.encode_speaker(vector) == code
        drawn = ours.encode_speaker(ours.random_speaker(statistics, hidden, seed))
        assert np.array_equal(theirs._decode(drawn), ours.decode_speaker(drawn, hidden))
        codes = generator.integers(0, 625, (4, seed + 1))
        prompt = theirs.encode_prompt(torch.from_numpy(codes))
        assert np.array_equal(ours.decode_prompt(prompt, 4, 626), codes)
        assert ours.encode_prompt(codes) == prompt
