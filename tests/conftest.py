"""Shared fixtures: bundles built once, and one daemon for the tests that do not disturb it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bundles import build_hibari, build_tone
from tests.daemon import Daemon, running


@pytest.fixture(scope="session")
def tone_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny real ONNX voice."""
    return build_tone(tmp_path_factory.mktemp("bundles") / "tone")


@pytest.fixture(scope="session")
def slow_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny voice with enough real matrix work that a sentence takes a good part of a second."""
    return build_tone(tmp_path_factory.mktemp("bundles") / "slow", name="slow", work=400)


@pytest.fixture(scope="session")
def hibari_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in English voice."""
    pytest.importorskip("hibari", reason="hibari-tts is not installed (extra voice-en)")
    return build_hibari(tmp_path_factory.mktemp("bundles") / "hibari")


@pytest.fixture(scope="module")
def daemon(tone_bundle: Path) -> Iterator[Daemon]:
    """A running daemon with the tiny voice and no loudspeaker."""
    with running(tone_bundle) as started:
        yield started
        assert started.process.poll() is None, f"the daemon died during the tests:\n{started.log[-3000:]}"
