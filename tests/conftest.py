"""Shared fixtures: bundles, a checkpoint, and one daemon for the tests that do not disturb it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import bundles, checkpoints
from tests.daemon import Daemon, running


@pytest.fixture(scope="session")
def tone_bundle() -> Path:
    """A tiny real ONNX voice."""
    return bundles.tone()


@pytest.fixture(scope="session")
def slow_bundle() -> Path:
    """The tiny voice with enough real matrix work that a sentence takes a good part of a second."""
    return bundles.tone(work=400)


@pytest.fixture(scope="session")
def hibari_bundle() -> Path:
    """The built-in English voice."""
    return bundles.hibari()


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ChatTTS checkpoint with random weights; not to be changed."""
    return checkpoints.tiny(tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """A running daemon with the tiny voice and no loudspeaker."""
    with running(bundles.tone()) as started:
        yield started
        assert started.process.poll() is None, f"the daemon died during the tests:\n{started.log[-3000:]}"
