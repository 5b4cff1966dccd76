"""The loudness in the manifest: that of the voice, and what happens where it cannot be measured."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
import pytest

from edged.bundle import Bundle
from edged.compiler import build, loudness
from edged.job import Params
from edged.manifest import read_manifest
from edged.voices import golden
from edged.voices.load import cards
from tests import bundles

NEEDED = "pyloudnorm is not installed (extra compile)"
RATE = 48_000


def test_a_tone_of_known_loudness() -> None:
    pytest.importorskip("pyloudnorm", reason=NEEDED)
    measure = loudness.meter()
    tone = np.sin(2 * np.pi * 997 * np.arange(5 * RATE) / RATE).astype(np.float32)
    assert measure(tone, RATE) == pytest.approx(-3.0, abs=0.15)  # the reference of BS.1770
    assert measure(tone * np.float32(0.1), RATE) == pytest.approx(-23.0, abs=0.15)
    assert measure(np.zeros(RATE, np.float32), RATE) is None
    assert measure(tone[: RATE // 3], RATE) is None


@pytest.mark.parametrize("family", ["tone", "hibari"])
def test_a_new_bundle_says_how_loud_its_voice_is(family: str) -> None:
    pyloudnorm = pytest.importorskip("pyloudnorm", reason=NEEDED)
    path: Path = getattr(bundles, family)()
    (card,) = cards(Bundle.load(path, verify=False))
    assert card.loudness_lufs is not None
    speech = golden.speak(
        bundles.voice(path), "The pump on line four has stopped, please check it.", Params()
    )
    other = pyloudnorm.Meter(card.sample_rate).integrated_loudness(speech.astype(np.float64))
    assert card.loudness_lufs == pytest.approx(other, abs=1.0 if family == "hibari" else 3.0)


def test_without_the_meter_a_bundle_has_none_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "pyloudnorm", None)  # as its import fails where it is not installed
    with caplog.at_level(logging.WARNING):
        path = build("tone", tmp_path / "tone")
    assert "pyloudnorm is not installed" in caplog.text
    assert read_manifest(path).voices[0].loudness_lufs is None
    assert b"loudness" not in (path / "manifest.json").read_bytes()


def test_the_figure_is_read_as_it_was_written() -> None:
    assert cards(Bundle.load(bundles.tone_of(-26.4)))[0].loudness_lufs == -26.4
