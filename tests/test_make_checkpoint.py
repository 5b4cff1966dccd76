"""The random checkpoints: complete, deterministic, of the published sizes, and of sane scale."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edged.compiler.chattts import layout
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.random_checkpoint import FULL, make_checkpoint
from edged.compiler.chattts.random_tokenizer import vocabulary, write_tokenizer
from edged.errors import BundleError
from tests.checkpoints import tensors_of, tiny

TOOL = Path(__file__).parents[1] / "tools" / "make_checkpoint"


def digests(root: Path) -> dict[str, str]:
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


def test_it_has_exactly_the_files_of_the_published_layout(tiny_checkpoint: Path) -> None:
    expected = {*layout.PARTS.values(), layout.GPT_CONFIG, *layout.TOKENIZER_FILES}
    assert set(digests(tiny_checkpoint)) == {f"asset/{file}" for file in expected}


def test_the_seed_decides_every_byte(tiny_checkpoint: Path, tmp_path: Path) -> None:
    assert digests(tiny(tmp_path / "again")) == digests(tiny_checkpoint)
    other = digests(tiny(tmp_path / "other", seed=2))
    changed = {file for file, digest in digests(tiny_checkpoint).items() if other[file] != digest}
    assert changed == {f"asset/{file}" for file in layout.PARTS.values()}


def test_the_layer_scale_is_a_choice(tmp_path: Path) -> None:
    with Checkpoint.open(tiny(tmp_path / "faint", layer_scale=1e-6)) as checkpoint:
        for part, name in (
            ("vocos", "backbone.convnext.0.gamma"),
            ("decoder", "decoder.decoder_block.1.weight"),
        ):
            assert 0 < np.abs(checkpoint.tensor(part, name)).max() < 2e-6


def test_the_full_size_is_the_published_one() -> None:
    counts = {
        part: sum(math.prod(shape) for shape in layout.tensors(part, FULL).values()) for part in layout.PARTS
    }
    assert counts["gpt"] == 20 * (4 * 768**2 + 3 * 768 * 3072 + 2 * 768) + 768
    assert counts["embed"] == 2 * (21_178 + 4 * 626) * 768
    assert round(counts["decoder"] / 1e6, 1) == 25.9
    assert round(counts["vocos"] / 1e6, 1) == 13.5


def test_the_full_vocabulary_is_the_published_one(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, FULL.text_tokens)
    raw = json.loads((tmp_path / "tokenizer.json").read_text())
    assert sorted(raw["model"]["vocab"].values()) == list(range(21_128))
    ids = {entry["content"]: entry["id"] for entry in raw["added_tokens"]}
    assert [ids[token] for token in layout.CONTROL_TOKENS] == list(range(21_128, 21_178))
    assert ids["[break_0]"] == 21_147  # ids below are text


def test_too_large_a_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="pieces"):
        vocabulary(80_000)


def test_an_existing_folder_is_not_overwritten(tiny_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    with pytest.raises(BundleError, match="exists"):
        make_checkpoint(tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_tokenizers_package_reads_it(tiny_checkpoint: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    with Checkpoint.open(tiny_checkpoint) as checkpoint:
        tokenizer = tokenizers.Tokenizer.from_file(str(checkpoint.tokenizer_file))
        text = "[Stts][spk_emb][speed_5]Hello, 你好!  [uv_break]doing[Ptts]"
        encoded = tokenizer.encode(text, add_special_tokens=False)
        assert encoded.tokens == [
            *("[Stts]", "[spk_emb]", "[speed_5]", "hello", ",", "你", "好", "!", "[uv_break]"),
            *("do", "##ing", "[Ptts]"),
        ]
        assert encoded.ids[1] == checkpoint.token_id("[spk_emb]")
        assert tokenizer.get_vocab_size() == checkpoint.sizes.text_tokens


def test_the_spectrum_tables_are_those_of_their_formulas(tiny_checkpoint: Path) -> None:
    tables = tensors_of(tiny_checkpoint / "asset" / layout.PARTS["vocos"])
    window = tables["head.istft.window"]
    assert (window[0], window[512]) == (0.0, 1.0)
    filters = tables["feature_extractor.mel_spec.mel_scale.fb"]
    assert filters.shape == (513, 100)
    assert (np.diff(filters.argmax(0)) >= 0).all()
    assert 0.5 < filters.max() <= 1.0


@pytest.mark.parametrize(
    ("arguments", "head_dim", "layers"),
    [([], 16, 2), (["--hidden", "128", "--heads", "2", "--layers", "1"], 64, 1)],
)
def test_the_tool_writes_a_readable_checkpoint(
    tmp_path: Path, arguments: list[str], head_dim: int, layers: int
) -> None:
    out = tmp_path / "made"
    done = subprocess.run(
        [sys.executable, TOOL, "--out", out, "--seed", "3", "--dtype", "bf16", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(out)
    with Checkpoint.open(out) as checkpoint:
        assert (checkpoint.sizes.head_dim, checkpoint.sizes.layers) == (head_dim, layers)
        assert checkpoint.tensor("gpt", "norm.weight").dtype == np.float32


def test_the_tool_refuses_sizes_that_do_not_fit(tmp_path: Path) -> None:
    arguments = [sys.executable, TOOL, "--out", tmp_path / "made", "--hidden", "70", "--heads", "4"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 2
    assert "hidden" in done.stderr
    assert not (tmp_path / "made").exists()
