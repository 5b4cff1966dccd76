"""The graphs and tools of ChatTTS against vectors that the reference made (see tests/reference)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("onnx", reason="the extra build is not installed")

from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.encoder import build_encoder
from edged.compiler.chattts.gpt import build_gpt
from edged.compiler.chattts.sampling import sampler
from edged.compiler.chattts.vocoder import build_code_vocoder, build_vocoder
from edged.voices.chattts import speakers
from tests import chattts_graphs as graphs

DATA = Path(__file__).parent / "data" / "chattts_tiny"
DIALECTS = ("ort", "standard")
RULES = ("symmetric", "tanh")
STEPS = 200
LOGITS = 1e-3  # most difference from the reference, in fp32
MEL = 1e-3
SNR_DB = 60.0
Build = Callable[..., Path]


def golden(name: str) -> dict[str, NDArray[Any]]:
    with np.load(DATA / f"{name}.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Path) -> Any:
    with Checkpoint.open(tiny_checkpoint) as opened:
        yield opened


@pytest.fixture(scope="module")
def built(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds a graph once for all tests of this file."""
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


# -- the language model ---------------------------------------------------------------------------


@pytest.fixture(params=DIALECTS)
def gpt(request: pytest.FixtureRequest, built: Build, checkpoint: Checkpoint) -> graphs.Gpt:
    return graphs.Gpt(built("gpt", request.param, positions=256), checkpoint.sizes, 256)


def row(data: dict[str, NDArray[Any]], name: str, audio: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """A prompt as the graph takes it; the last `audio` tokens are audio codes."""
    ids = data[f"{name}.ids"].astype(np.int64)
    text = np.ones(len(ids), np.int64)
    text[len(ids) - audio :] = 0
    return ids, text


def close(
    found: list[dict[str, NDArray[Any]]], data: dict[str, NDArray[Any]], name: str, at: int = 0
) -> None:
    """Identical tokens, and logits and hidden states within the tolerance."""
    tokens = data[f"{name}.tokens"]
    codes = np.stack([step["codes"][at] for step in found])[:, : tokens.shape[1]]
    assert np.array_equal(codes, tokens)
    hidden = np.stack([step["hidden"][at] for step in found])
    assert np.abs(hidden - data[f"{name}.hidden"]).max() <= LOGITS
    for kept, wanted in zip(data["kept"], data[f"{name}.logits"], strict=False):
        assert np.abs(found[kept]["logits"][at] - wanted).max() <= LOGITS


@pytest.mark.parametrize("number", range(3))
def test_greedy_decoding_is_the_references(gpt: graphs.Gpt, number: int) -> None:
    data = golden("gpt")
    name = f"alone{number}.0"
    close(graphs.greedy(gpt, [row(data, name)], data[f"speaker{number}"][None], STEPS), data, name)


def test_rows_of_different_lengths_decode_as_they_do_alone(gpt: graphs.Gpt) -> None:
    data = golden("gpt")
    rows = [row(data, f"alone{number}.0") for number in range(3)]
    given = np.stack([data[f"speaker{number}"] for number in range(3)])
    found = graphs.greedy(gpt, rows, given, STEPS)
    for number in range(3):
        assert np.array_equal(data[f"batch.{number}.tokens"], data[f"alone{number}.0.tokens"])
        close(found, data, f"alone{number}.0", at=number)


def test_a_prompt_may_end_with_audio_codes(gpt: graphs.Gpt) -> None:
    data = golden("gpt")
    prompt = row(data, "prompted.0", audio=9)
    close(graphs.greedy(gpt, [prompt], data["speaker0"][None], 40), data, "prompted.0")


def test_the_text_head_refines_as_the_references(gpt: graphs.Gpt) -> None:
    data = golden("gpt")
    found = graphs.greedy(gpt, [row(data, "refine.0")], None, 60, refine=True)
    close(found, data, "refine.0")


def test_sampling_leaves_the_references_probabilities() -> None:
    import onnxruntime as ort

    data = golden("sampling")
    model = sampler(1, 626, width=626, end=625, adaptive=False).build()
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    count = len(data["scores"])
    feeds = {
        "scores": data["scores"][:, None],
        "uniform": np.zeros((count, 4), np.float32),
        "history": np.repeat(data["history"][..., None], 4, axis=2),
        "greedy": np.zeros(count, np.int64),
        **{key: data[key].astype(np.float32) for key in ("temperature", "top_p", "penalty")},
        **{key: data[key].astype(np.int64) for key in ("top_k", "ban_end")},
    }
    names = {value.name: value.shape for value in session.get_inputs()}
    feeds = {name: value for name, value in feeds.items() if name in names}
    for name in ("uniform", "history"):
        feeds[name] = feeds[name][..., : names[name][-1]]
    (probs,) = session.run(["probs"], feeds)
    assert np.abs(probs[:, 0] - data["probs"]).max() <= 1e-6


# -- between codes and audio ----------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("steps", [1, 2, 24])
def test_hidden_states_become_the_references_samples(built: Build, dialect: str, steps: int) -> None:
    data = golden("vocoder")
    found = graphs.run(built("vocoder", dialect, steps=32), hidden=data[f"hidden{steps}"][None])
    assert np.abs(found["mel"] - data[f"mel{steps}"]).max() <= MEL
    assert found["samples"].shape == data[f"samples{steps}"].shape
    assert graphs.snr_db(data[f"samples{steps}"], found["samples"]) >= SNR_DB


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("rule", RULES)
def test_codes_become_the_references_samples(built: Build, dialect: str, rule: str) -> None:
    data = golden(f"dvae_{rule}")
    found = graphs.run(
        built("codes", dialect, steps=32, rule=rule), codes=data["codes"][None].astype(np.int64)
    )
    assert np.abs(found["mel"] - data["mel"]).max() <= MEL
    assert graphs.snr_db(data["samples"], found["samples"]) >= SNR_DB


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("rule", RULES)
def test_audio_becomes_the_references_codes(built: Build, dialect: str, rule: str) -> None:
    data = golden(f"dvae_{rule}")
    audio = (data["audio"] / np.float32(32_768)).astype(np.float32)
    path = built("encoder", dialect, seconds=2, rule=rule)
    wrong = total = 0
    for cut in (len(audio), 24_123, 3_000):
        found = graphs.run(path, audio=audio[None, :cut])
        wanted = data[f"encoded{cut}"]
        assert found["codes"][0].shape == wanted.shape
        wrong += int((found["codes"][0] != wanted).any(axis=0).sum())
        total += wanted.shape[1]
        if cut == len(audio):
            assert np.abs(found["mel"][0] - data["log_mel"]).max() <= MEL
    assert wrong <= total * 1e-3  # steps with any other code


# -- text and speakers ----------------------------------------------------------------------------


def test_texts_have_the_references_tokens(checkpoint: Checkpoint) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(checkpoint.tokenizer_file))
    for case in json.loads((DATA / "tokens.json").read_text()):
        assert tokenizer.encode(case["text"], add_special_tokens=False).ids == case["ids"], case["text"]


def test_speaker_strings_round_trip_bit_by_bit(checkpoint: Checkpoint) -> None:
    data = json.loads((DATA / "speakers.json").read_text())
    hidden = checkpoint.sizes.hidden
    deviation, mean = speakers.decode_statistics(data["statistics"], hidden)
    assert np.array_equal(deviation, np.float16(data["deviation"]))
    assert np.array_equal(mean, np.float16(data["mean"]))
    assert speakers.encode_statistics(deviation, mean) == data["statistics"]
    for case in data["speakers"]:
        vector = speakers.decode_speaker(case["code"], hidden)
        assert np.array_equal(vector, np.float16(case["vector"]))
        assert speakers.encode_speaker(vector) == case["code"]
        if "applied" in case:  # the reference divides in float16
            np.testing.assert_allclose(speakers.embedding(vector), case["applied"], rtol=2e-3, atol=1e-5)
    for case in data["prompts"]:
        codes = speakers.decode_prompt(case["code"], 4, 626)
        assert codes.tolist() == case["codes"]
        assert speakers.encode_prompt(codes) == case["code"]
