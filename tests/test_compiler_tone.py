"""The tone compiler: small, real, reproducible."""

from __future__ import annotations

import sys

import onnx
import pytest

from edged.bundle import Bundle
from edged.compiler import build, check
from edged.errors import BadValue, BundleError, BundleFamilyUnknown, MissingExtra
from tests import bundles


def content(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}


def test_a_real_network_of_a_few_kb():
    path = bundles.tone()
    onnx.checker.check_model(onnx.load(path / "engines/tone.onnx"), full_check=True)
    assert sum(map(len, content(path).values())) < 8_000
    assert set(content(path)) == {"manifest.json", "engines/tone.onnx", "LICENSE", "NOTICE"}


def test_the_same_inputs_give_the_same_bytes(tmp_path):
    first = build("tone", tmp_path / "here" / "tone")
    second = build("tone", tmp_path / "there" / "tone")
    assert content(first) == content(second)
    assert str(tmp_path) not in str(content(first))


def test_progress_rises_to_one(tmp_path):
    told = []
    build("tone", tmp_path / "tone", lambda phase, fraction: told.append((phase, fraction)))
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert all(phase for phase, _ in told)


def test_options(tmp_path):
    bundle = Bundle.load(build("tone", tmp_path / "t", rate=16_000, max_symbols=20, name="quiet", work=2))
    assert bundle.manifest.name == "quiet"
    assert bundle.manifest.sample_rate == 16_000
    assert bundle.limit("max_symbols") == 20
    with pytest.raises(BadValue, match="rate: expected a whole number from 8000 to 48000, got 100"):
        build("tone", tmp_path / "bad", rate=100)
    for wrong in ({"rate": "nan"}, {"work": [1]}, {"max_symbols": True}, {"name": "../x"}, {"out": "x"}):
        with pytest.raises(BadValue, match=next(iter(wrong))):
            check("tone", wrong)
    assert not (tmp_path / "bad").exists()


def test_an_unknown_family_suggests_a_known_one(tmp_path):
    with pytest.raises(BundleFamilyUnknown, match="did you mean 'tone'"):
        build("tones", tmp_path / "x")


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"\[build\]"):
        build("tone", tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_bundle_is_left_alone(tmp_path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("precious")
    with pytest.raises(BundleError, match="not a bundle"):
        build("tone", out)
    assert content(out) == {"thesis.txt": b"precious"}
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]
