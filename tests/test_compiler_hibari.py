"""The hibari compiler: the package's network and dictionaries, cut and packed without loss."""

from __future__ import annotations

import gzip
import json
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edged.bundle import Bundle
from edged.compiler import build, cut, tables
from edged.compiler import hibari as family
from edged.errors import BundleError, BundleManifestInvalid, MissingExtra
from edged.voices.hibari.tables import Tables
from tests import bundles

hibari = pytest.importorskip("hibari", reason="the package hibari is not installed (extra voice-en)")
onnx = pytest.importorskip("onnx", reason="the package onnx is not installed (extra voice-en)")

ASSETS = Path(hibari.__file__).parent / "assets"


@pytest.fixture(scope="module")
def bundle():
    return Bundle.load(bundles.hibari())


@pytest.fixture(scope="module")
def opened(bundle):
    base = Tables(bundle.data_path("tables"))
    yield base
    base.close()


def asset(name):
    return json.loads(gzip.decompress((ASSETS / name).read_bytes()))


def test_the_manifest_tells_what_and_whose(bundle):
    manifest = bundle.manifest
    assert (manifest.name, manifest.family, manifest.sample_rate) == ("hibari", "hibari", 24_000)
    (voice,) = manifest.voices
    assert (voice.name, voice.languages, voice.description) == (
        "heart",
        ("en",),
        "American English, female",
    )
    assert manifest.licence.weights == "Apache-2.0"
    assert manifest.provenance["hibari-tts"] == manifest.version
    assert "Apache License" in (bundle.path / "LICENSE").read_text()
    assert "Kokoro" in (bundle.path / "NOTICE").read_text()


def test_the_same_inputs_give_the_same_bytes(tmp_path):
    first, second = bundles.hibari(), build("hibari", tmp_path / "again")
    files = {f.relative_to(first) for f in first.rglob("*") if f.is_file()}
    assert files == {f.relative_to(second) for f in second.rglob("*") if f.is_file()}
    for file in files:
        assert (first / file).read_bytes() == (second / file).read_bytes(), file
    assert str(tmp_path) not in (second / "manifest.json").read_text()


def session(model, optimized):
    import onnxruntime as ort

    options = ort.SessionOptions()
    if not optimized:
        # Fused operators round differently, and one step of an int8 value is visible in the spectra.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model, options)


def outputs(encoder, decoder):
    """Durations, pitch and spectra [F, 5 x 601] of one sentence through the two halves."""
    ids = np.array([[0, *random.Random(1).choices(range(43, 80), k=40), 0]])
    given = {"ids": ids, "speed": np.array([1.2], np.float32)}
    text, prosody, durations = encoder.run(["text", "prosody", "durations"], given)
    index = np.repeat(np.arange(ids.shape[1]), durations)
    spectra, f0 = decoder.run(["spectra", "f0"], {"text": text, "prosody": prosody, "index": index})
    return given, durations, f0, spectra[0]


def test_the_two_halves_compute_what_the_whole_does():
    model = onnx.load(ASSETS / "hibari.onnx")
    first = cut.cut(model, {"ids": "ids", "speed": "speed"}, family.FEATURES | family.DURATIONS)
    second = cut.cut(model, family.FEATURES | family.INDEX, family.HEAD)
    given, durations, f0, spectra = outputs(session(first, False), session(second, False))
    whole = session(str(ASSETS / "hibari.onnx"), False)
    expected = whole.run(["lh", "theta", "ln", "lr", "phi", "f0"], given)
    assert spectra.shape[0] == 2 * durations.sum()
    np.testing.assert_array_equal(f0, expected[5])
    for part, reference in zip(np.split(spectra, 5, axis=1), expected, strict=False):
        np.testing.assert_array_equal(part.T, reference[0])


def test_the_optimized_engines_agree_with_the_plain_ones(bundle):
    model = onnx.load(ASSETS / "hibari.onnx")
    first = cut.cut(model, {"ids": "ids", "speed": "speed"}, family.FEATURES | family.DURATIONS)
    second = cut.cut(model, family.FEATURES | family.INDEX, family.HEAD)
    _, durations, f0, spectra = outputs(session(first, False), session(second, False))
    paths = [str(bundle.engine_path(name)) for name in ("encoder", "decoder")]
    _, durations_again, f0_again, spectra_again = outputs(*(session(path, True) for path in paths))
    np.testing.assert_array_equal(durations, durations_again)
    assert np.median(np.abs(f0 - f0_again)) < 1.0  # Hz
    # Log magnitudes: a rounding of the dynamic int8 activations moves them by hundredths.
    assert np.sqrt(np.mean((spectra - spectra_again) ** 2)) < 0.1 * np.std(spectra)


@pytest.mark.parametrize("name", ["gold", "silver"])
def test_every_word_reads_as_in_the_package(opened, name):
    expected = asset(f"lexicon_us_{name}.json.gz")
    table = getattr(opened, name)
    for word in random.Random(2).sample(sorted(expected), 5_000):
        assert table.get(word) == expected[word], word
        assert word in table


def test_the_tagger_keeps_every_weight(opened):
    expected = asset("tagger.json.gz")
    for feature in random.Random(3).sample(sorted(expected["weights"]), 5_000):
        assert opened.weight.get(feature) == expected["weights"][feature]
    for word, tag in random.Random(4).sample(sorted(expected["tagdict"].items()), 2_000):
        assert opened.tag.get(word) == tag
    assert opened.tags == expected["tags"]
    assert all(word in opened.frequent for word in expected["vocab"][:3_000])


def test_what_is_not_there(opened):
    for table in (opened.gold, opened.silver, opened.tag, opened.frequent, opened.weight):
        assert table.get("qqqzzz") is None
        assert table.get("qqqzzz", "default") == "default"
        assert "qqqzzz" not in table
        assert table.get("\ud800") is None
        assert table.get("a'; DROP TABLE gold; --") is None
    assert opened.gold.get("hello") is not None


def test_the_tables_are_read_only(opened):
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        opened._base.execute("DELETE FROM gold")


def test_a_file_that_is_no_table(tmp_path):
    (tmp_path / "t.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(BundleManifestInvalid):
        Tables(tmp_path / "t.sqlite")
    sqlite3.connect(tmp_path / "empty.sqlite").close()
    with pytest.raises(BundleManifestInvalid):
        Tables(tmp_path / "empty.sqlite")


def test_weights_that_do_not_fit_tenths_are_refused():
    with pytest.raises(ValueError, match="more than one decimal"):
        tables._pack({"NN": 0.25}, {"NN": 0})


def test_another_version_of_the_network_is_refused():
    model = onnx.load(ASSETS / "hibari.onnx")
    with pytest.raises(BundleError, match="no tensor '/gone'"):
        cut.cut(model, {"ids": "ids"}, {"/gone": "x"})
    with pytest.raises(BundleError, match="without a source"):
        cut.cut(model, {"ids": "ids"}, {"f0": "f0"})


@pytest.mark.parametrize("module", ["hibari", "onnx"])
def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"\[voice-en\]") as caught:
        build("hibari", tmp_path / "x")
    assert module in caught.value.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("megabytes", [3, 11], ids=["full in a network", "full in the word lists"])
def test_a_full_disk_is_told_as_such_and_left_empty(tmp_path, megabytes):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(disk)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        with pytest.raises(BundleError, match=r"No space left|disk is full") as caught:
            build("hibari", disk / "hibari")
        assert "free space" in caught.value.hint
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)
