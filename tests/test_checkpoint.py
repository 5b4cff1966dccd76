"""The checkpoint reader: what it gives, and every fault found at open and named."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edged import errors
from edged.compiler.chattts import layout
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.layout import GPT_CONFIG, PARTS, TOKENIZER, TOKENIZER_FILES
from edged.compiler.chattts.random_checkpoint import TINY
from tests.checkpoints import Tensors, copied, rewrite, rewrite_header, rewrite_json, tensors_of, tiny

GPT, EMBED, DECODER, DVAE, VOCOS = PARTS.values()
Q = "layers.1.self_attn.q_proj.weight"
ALL_FILES = (*PARTS.values(), GPT_CONFIG, *TOKENIZER_FILES)


@pytest.fixture
def spoiled(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    """A copy to spoil; the asset folder itself."""
    return copied(tiny_checkpoint, tmp_path / "copy") / "asset"


def fault(asset: Path, kind: type[errors.CheckpointError], *named: str) -> str:
    """Opening fails with exactly this class; the message names these."""
    with pytest.raises(errors.CheckpointError) as caught:
        Checkpoint.open(asset)
    assert type(caught.value) is kind, caught.value
    for name in named:
        assert name in caught.value.message
    assert caught.value.hint
    return str(caught.value)


# -- what it gives --------------------------------------------------------------------------------


def test_both_folders_are_accepted(tiny_checkpoint: Path) -> None:
    for path in (tiny_checkpoint, tiny_checkpoint / "asset"):
        with Checkpoint.open(path) as checkpoint:
            assert checkpoint.sizes == TINY
            assert checkpoint.tokenizer_file.is_file()


def test_every_tensor_of_the_layout_is_given_as_float32(tiny_checkpoint: Path) -> None:
    with Checkpoint.open(tiny_checkpoint) as checkpoint:
        for part in PARTS:
            expected = layout.tensors(part, checkpoint.sizes)
            assert checkpoint.names(part) == tuple(expected)
            for name, shape in expected.items():
                values = checkpoint.tensor(part, name)
                assert (values.dtype, values.shape) == (np.float32, shape)
                assert checkpoint.shape(part, name) == shape
                assert checkpoint.has(part, name)
        assert not checkpoint.has("gpt", "embed_tokens.weight")


def test_an_unknown_name_is_answered_with_the_nearest(tiny_checkpoint: Path) -> None:
    with (
        Checkpoint.open(tiny_checkpoint) as checkpoint,
        pytest.raises(errors.CheckpointMissingTensor, match="q_proj"),
    ):
        checkpoint.tensor("gpt", "layers.0.self_attn.q_prj.weight")


def test_control_tokens_have_ids_and_the_boundary_is_break_0(tiny_checkpoint: Path) -> None:
    with Checkpoint.open(tiny_checkpoint) as checkpoint:
        ids = [checkpoint.token_id(token) for token in layout.CONTROL_TOKENS]
        assert ids == list(range(TINY.text_tokens - 50, TINY.text_tokens))
        with pytest.raises(errors.CheckpointConfig, match="nonsense"):
            checkpoint.token_id("[nonsense]")


def test_the_fingerprint_covers_every_file(spoiled: Path) -> None:
    with Checkpoint.open(spoiled) as checkpoint:
        before = checkpoint.fingerprint()
    assert set(before) == set(ALL_FILES)
    rewrite(spoiled / DVAE, lambda t: t["coef"].__setitem__((0, 0, 0), 3.0))
    with Checkpoint.open(spoiled) as checkpoint:
        after = checkpoint.fingerprint()
    assert [file for file in before if before[file] != after[file]] == [DVAE]


def test_nothing_stays_open(tiny_checkpoint: Path, spoiled: Path) -> None:
    (spoiled / VOCOS).write_bytes(b"")
    before = len(os.listdir("/proc/self/fd"))
    Checkpoint.open(tiny_checkpoint).close()
    fault(spoiled, errors.CheckpointDamaged, VOCOS)
    assert len(os.listdir("/proc/self/fd")) == before


# -- element types and storage forms --------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "bits"), [("fp16", 11), ("bf16", 8)])
def test_half_precision_differs_by_its_rounding_only(
    tiny_checkpoint: Path, tmp_path: Path, dtype: str, bits: int
) -> None:
    half = tiny(tmp_path / dtype, dtype=dtype)
    with Checkpoint.open(tiny_checkpoint) as whole, Checkpoint.open(half) as rounded:
        for part in PARTS:
            for name in whole.names(part):
                if "head_" in name:
                    continue  # merged from two rounded parts: below
                want, have = whole.tensor(part, name), rounded.tensor(part, name)
                tiny_step = 2.0**-25 if dtype == "fp16" else 0.0  # where float16 is subnormal
                assert (np.abs(want - have) <= np.abs(want) * 2.0**-bits + tiny_step).all(), name
        want, have = (c.tensor("embed", "head_text.weight") for c in (whole, rounded))
        assert np.abs(want - have).max() <= 4 * 2.0**-bits * np.abs(want).max()


def test_the_safetensors_package_reads_the_same_values(tiny_checkpoint: Path, tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    half = tiny(tmp_path / "half", dtype="fp16")
    for root in (tiny_checkpoint, half):
        for file in PARTS.values():
            theirs, ours = numpy.load_file(root / "asset" / file), tensors_of(root / "asset" / file)
            assert set(theirs) == set(ours)
            assert all(np.array_equal(theirs[name].astype(np.float32), ours[name]) for name in ours)


def test_a_file_of_the_safetensors_package_is_read(spoiled: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    before = tensors_of(spoiled / GPT)
    numpy.save_file(before, spoiled / GPT)
    with Checkpoint.open(spoiled) as checkpoint:
        assert np.array_equal(checkpoint.tensor("gpt", Q), before[Q])


def _heads(tensors: Tensors) -> list[str]:
    return [n.removesuffix(".parametrizations.weight.original0") for n in tensors if n.endswith("original0")]


def _as_old_pairs(tensors: Tensors) -> None:
    for head in _heads(tensors):
        for number, letter in enumerate("gv"):
            tensors[f"{head}.weight_{letter}"] = tensors.pop(
                f"{head}.parametrizations.weight.original{number}"
            )


def _as_plain(tensors: Tensors) -> None:
    for head in _heads(tensors):
        magnitude = tensors.pop(f"{head}.parametrizations.weight.original0")
        direction = tensors.pop(f"{head}.parametrizations.weight.original1")
        norms = np.linalg.norm(direction.astype(np.float64), axis=1, keepdims=True)
        tensors[f"{head}.weight"] = (magnitude * direction / norms).astype(np.float32)


@pytest.mark.parametrize("form", [_as_old_pairs, _as_plain])
def test_the_forms_of_a_weight_normalised_head_are_equal(
    tiny_checkpoint: Path, spoiled: Path, form: Callable[[Tensors], None]
) -> None:
    rewrite(spoiled / EMBED, form)
    with Checkpoint.open(tiny_checkpoint) as published, Checkpoint.open(spoiled) as other:
        assert published.names("embed") == other.names("embed")
        for name in published.names("embed"):
            np.testing.assert_allclose(
                other.tensor("embed", name), published.tensor("embed", name), rtol=3e-7, atol=0
            )


def test_the_rows_of_a_head_have_its_magnitudes(tiny_checkpoint: Path) -> None:
    raw = tensors_of(tiny_checkpoint / "asset" / EMBED)
    with Checkpoint.open(tiny_checkpoint) as checkpoint:
        merged = checkpoint.tensor("embed", "head_code.2.weight").astype(np.float64)
    magnitudes = raw["head_code.2.parametrizations.weight.original0"]
    np.testing.assert_allclose(np.linalg.norm(merged, axis=1), magnitudes[:, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("file", "name", "shape"),
    [
        (GPT, "embed_tokens.weight", (9, 64)),
        (GPT, "rotary_emb.inv_freq", (8,)),
        (GPT, "layers.0.self_attn.rotary_emb.inv_freq", (8,)),
        (DVAE, "vq_layer.quantizer.rvqs.0.layers.1.implicit_codebook", (625, 4)),
    ],
)
def test_known_extras_are_left_aside(spoiled: Path, file: str, name: str, shape: tuple[int, ...]) -> None:
    rewrite(spoiled / file, lambda t: t.__setitem__(name, np.ones(shape, np.float32)))
    Checkpoint.open(spoiled).close()


@pytest.mark.parametrize("file", [DVAE, VOCOS])
def test_tables_that_can_be_computed_may_be_absent(spoiled: Path, file: str) -> None:
    def drop(tensors: Tensors) -> None:
        tables = [n for n in tensors if "mel_spec" in n or "istft" in n]
        assert tables
        for name in tables:
            del tensors[name]

    rewrite(spoiled / file, drop)
    Checkpoint.open(spoiled).close()


# -- files ----------------------------------------------------------------------------------------


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(errors.CheckpointMissingFile, match="nowhere"):
        Checkpoint.open(tmp_path / "nowhere")


@pytest.mark.parametrize("file", ALL_FILES)
def test_a_missing_file(spoiled: Path, file: str) -> None:
    (spoiled / file).unlink()
    fault(spoiled, errors.CheckpointMissingFile, file)


@pytest.mark.parametrize("file", PARTS.values())
@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_truncated_file(spoiled: Path, file: str, keep: int) -> None:
    raw = (spoiled / file).read_bytes()
    (spoiled / file).write_bytes(raw[:keep])
    fault(spoiled, errors.CheckpointDamaged, file)


def test_a_file_with_a_tail(spoiled: Path) -> None:
    with (spoiled / GPT).open("ab") as stream:
        stream.write(b"x")
    fault(spoiled, errors.CheckpointDamaged, GPT, "1 bytes")


def test_a_git_lfs_pointer_is_recognised(spoiled: Path) -> None:
    (spoiled / GPT).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    assert "git lfs pull" in fault(spoiled, errors.CheckpointDamaged, GPT)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 4000), value=st.integers(0, 255), count=st.integers(1, 8))
def test_a_damaged_header_is_a_named_fault_or_harmless(
    spoiled: Path, place: int, value: int, count: int
) -> None:
    file = spoiled / DECODER
    whole = file.read_bytes()
    raw = bytearray(whole)
    raw[place : place + count] = bytes([value]) * count
    file.write_bytes(raw)
    try:
        with contextlib.suppress(errors.CheckpointError):  # anything else fails the test
            Checkpoint.open(spoiled).close()
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [64]},
        {"dtype": "F32", "shape": [64], "data_offsets": [0]},
        {"dtype": "F32", "shape": [-64], "data_offsets": [0, 256]},
        {"dtype": "F32", "shape": [64.0], "data_offsets": [0, 256]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
        {"dtype": ["F32"], "shape": [64], "data_offsets": [0, 256]},
        {"dtype": "F32", "shape": [64], "data_offsets": [4, 260]},
        {"dtype": "F32", "shape": [63], "data_offsets": [0, 256]},
        [],
        7,
    ],
)
def test_a_malformed_header_entry(spoiled: Path, entry: object) -> None:
    rewrite_header(spoiled / GPT, lambda header: header.__setitem__("norm.weight", entry))
    fault(spoiled, errors.CheckpointDamaged, GPT, "norm.weight")


# -- tensors --------------------------------------------------------------------------------------

_ONE_OF_EACH = [
    (GPT, Q),
    (GPT, "layers.0.input_layernorm.weight"),
    (GPT, "norm.weight"),
    (EMBED, "emb_text.weight"),
    (EMBED, "head_text.parametrizations.weight.original0"),
    (EMBED, "head_code.3.parametrizations.weight.original1"),
    (DECODER, "coef"),
    (DECODER, "decoder.conv_in.0.weight"),
    (DECODER, "decoder.decoder_block.1.weight"),
    (DVAE, "downsample_conv.2.bias"),
    (DVAE, "encoder.decoder_block.0.pwconv1.weight"),
    (DVAE, "vq_layer.quantizer.rvqs.1.project_in.weight"),
    (VOCOS, "backbone.embed.weight"),
    (VOCOS, "backbone.convnext.1.gamma"),
    (VOCOS, "head.out.bias"),
]


@pytest.mark.parametrize(("file", "name"), _ONE_OF_EACH)
def test_a_missing_tensor(spoiled: Path, file: str, name: str) -> None:
    rewrite(spoiled / file, lambda t: t.pop(name))
    fault(spoiled, errors.CheckpointMissingTensor, file, name)


def test_no_tensor_can_be_dropped_unseen(tiny_checkpoint: Path, spoiled: Path) -> None:
    for part, file in PARTS.items():
        whole = (spoiled / file).read_bytes()
        for name in tensors_of(spoiled / file):
            if layout.TOLERATED[part].fullmatch(name):
                continue
            rewrite(spoiled / file, lambda t, name=name: t.pop(name))
            with pytest.raises(errors.CheckpointError) as caught:
                Checkpoint.open(spoiled)
            assert file in caught.value.message
            (spoiled / file).write_bytes(whole)


def test_a_renamed_tensor_is_told_with_its_new_name(spoiled: Path) -> None:
    rewrite(spoiled / GPT, lambda t: t.__setitem__("layers.1.self_attn.q_proj.weights", t.pop(Q)))
    assert "q_proj.weights" in fault(spoiled, errors.CheckpointMissingTensor, GPT, Q)


@pytest.mark.parametrize(("file", "name"), _ONE_OF_EACH)
def test_a_wrong_shape(spoiled: Path, file: str, name: str) -> None:
    rewrite(spoiled / file, lambda t: t.__setitem__(name, t[name][..., None]))
    fault(spoiled, errors.CheckpointShape, file, name)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (GPT, "layers.2.mlp.up_proj.weight"),  # a layer more than config.json says
        (GPT, "layers.0.self_attn.q_proj.bias"),
        (EMBED, "head_code.0.weight"),  # beside its two parts
        (DECODER, "vq_layer.quantizer.rvqs.0.project_in.weight"),
        (DVAE, "encoder.decoder_block.0.extra"),
        (VOCOS, "backbone.convnext.0.adanorm.weight"),
        (VOCOS, "embed_tokens.weight"),  # known, but of another file
    ],
)
def test_an_extra_tensor(spoiled: Path, file: str, name: str) -> None:
    rewrite(spoiled / file, lambda t: t.__setitem__(name, np.zeros((626, 64), np.float32)))
    kind = errors.CheckpointExtraTensor
    if name == "head_code.0.weight":
        fault(spoiled, kind, file, "head_code.0.parametrizations")
    else:
        fault(spoiled, kind, file, name)


@pytest.mark.parametrize("dtype", ["I8", "U8", "F64", "I32", "F8_E4M3", "BOOL"])
def test_other_element_types_are_refused(spoiled: Path, dtype: str) -> None:
    rewrite_header(spoiled / GPT, lambda header: header["norm.weight"].__setitem__("dtype", dtype))
    fault(spoiled, errors.CheckpointDtype, GPT, "norm.weight", dtype)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("part", "name", "stored"),
    [
        ("gpt", Q, Q),
        ("embed", "head_text.weight", "head_text.parametrizations.weight.original1"),
        ("dvae", "coef", "coef"),
    ],
)
def test_values_that_are_no_numbers_are_found_when_read(
    spoiled: Path, part: str, name: str, stored: str, value: float
) -> None:
    rewrite(spoiled / PARTS[part], lambda t: t[stored].reshape(-1).__setitem__(-1, value))
    with Checkpoint.open(spoiled) as checkpoint:
        with pytest.raises(errors.CheckpointDamaged, match=re.escape(stored)) as caught:
            checkpoint.tensor(part, name)
        assert PARTS[part] in caught.value.message


def test_a_direction_of_zeros_is_found_when_read(spoiled: Path) -> None:
    stored = "head_code.1.parametrizations.weight.original1"
    rewrite(spoiled / EMBED, lambda t: t[stored].__setitem__(7, 0))
    with (
        Checkpoint.open(spoiled) as checkpoint,
        pytest.raises(errors.CheckpointDamaged, match=re.escape(stored)),
    ):
        checkpoint.tensor("embed", "head_code.1.weight")


# -- files that do not belong together ------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "sizes"),
    [
        (GPT, {"hidden": 96}),
        (EMBED, {"hidden": 96}),
        (DECODER, {"hidden": 96}),
        (EMBED, {"text_tokens": 600}),
    ],
)
def test_a_file_of_another_model(
    tiny_checkpoint: Path, spoiled: Path, tmp_path: Path, file: str, sizes: dict[str, int]
) -> None:
    from dataclasses import replace

    from edged.compiler.chattts.random_checkpoint import make_checkpoint

    other = replace(TINY, **sizes)
    half = other.hidden // 2
    other = replace(other, decoder=replace(TINY.decoder, inputs=half, outputs=half))
    made = make_checkpoint(tmp_path / "other", other)
    (spoiled / file).write_bytes((made / "asset" / file).read_bytes())
    with pytest.raises(errors.CheckpointError) as caught:
        Checkpoint.open(spoiled)
    assert file in caught.value.message


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [GPT_CONFIG, *TOKENIZER_FILES])
@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\xff"])
def test_json_that_is_none(spoiled: Path, file: str, content: str) -> None:
    (spoiled / file).write_bytes(content.encode("latin-1"))
    fault(spoiled, errors.CheckpointConfig, file)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", None),
        ("hidden_size", "64"),
        ("hidden_size", 64.0),
        ("hidden_size", True),
        ("num_hidden_layers", 0),
        ("num_hidden_layers", 10**9),
        ("num_attention_heads", 5),
        ("head_dim", 32),
        ("num_key_value_heads", 2),
        ("rms_norm_eps", -1e-6),
        ("rope_theta", "1e4"),
        ("rope_scaling", {"rope_type": "linear", "factor": 2.0}),
        ("attention_bias", True),
        ("mlp_bias", True),
        ("hidden_act", "gelu"),
        ("model_type", "gpt2"),
        ("num_audio_tokens", 1024),
        ("num_text_tokens", 511),
        ("num_vq", 8),
    ],
)
def test_a_setting_that_cannot_be_built(spoiled: Path, key: str, value: object) -> None:
    rewrite_json(spoiled / GPT_CONFIG, lambda config: config.__setitem__(key, value))
    named = "num_attention_heads" if key == "head_dim" else key
    fault(spoiled, errors.CheckpointConfig, GPT_CONFIG, named)


def test_settings_that_may_be_absent(spoiled: Path) -> None:
    def thin(config: dict[str, object]) -> None:
        for key in ("num_text_tokens", "num_audio_tokens", "num_vq", "rope_scaling", "rms_norm_eps"):
            del config[key]
        del config["rope_theta"], config["num_key_value_heads"]
        config["rope_parameters"] = {"rope_theta": 5e5, "rope_type": "default"}

    rewrite_json(spoiled / GPT_CONFIG, thin)
    with Checkpoint.open(spoiled) as checkpoint:
        assert (checkpoint.sizes.rope_theta, checkpoint.sizes.rms_eps) == (5e5, 1e-6)


def test_fewer_layers_than_config_says(spoiled: Path) -> None:
    rewrite_json(spoiled / GPT_CONFIG, lambda config: config.__setitem__("num_hidden_layers", 3))
    fault(spoiled, errors.CheckpointMissingTensor, GPT, "layers.2.", "more")


@pytest.mark.parametrize("token", layout.NEEDED_TOKENS)
def test_a_tokenizer_without_a_control_token(spoiled: Path, token: str) -> None:
    def drop(raw: dict[str, list[dict[str, object]]]) -> None:
        raw["added_tokens"] = [entry for entry in raw["added_tokens"] if entry["content"] != token]

    rewrite_json(spoiled / TOKENIZER, drop)
    fault(spoiled, errors.CheckpointConfig, TOKENIZER, token)


def test_a_tokenizer_larger_than_the_embedding(spoiled: Path) -> None:
    rewrite_json(spoiled / TOKENIZER, lambda raw: raw["added_tokens"][-1].__setitem__("id", 512))
    fault(spoiled, errors.CheckpointConfig, TOKENIZER, "[speed_9]", "512")


def test_json_that_is_no_tokenizer(spoiled: Path) -> None:
    (spoiled / TOKENIZER).write_text(json.dumps({"model": {"vocab": [1, 2]}}))
    fault(spoiled, errors.CheckpointConfig, TOKENIZER)
