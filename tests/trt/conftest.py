"""Tests of this folder run in a forked process each, with real pycuda on a stand-in for the driver, and with
the real bindings of TensorRT, whose engines are stand-ins."""

from __future__ import annotations

from pathlib import Path

import pytest

from edged.bundle import Bundle
from tests.cuda.conftest import gpu, libcuda, pytest_pyfunc_call  # noqa: F401
from tests.trt import bindings, bundles


@pytest.fixture(params=bindings.VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Of the bindings: each in turn."""
    reason = bindings.unavailable(request.param)
    if reason:
        pytest.skip(reason)
    return str(request.param)


@pytest.fixture
def newest() -> str:
    reason = bindings.unavailable(bindings.VERSIONS[-1])
    if reason:
        pytest.skip(reason)
    return bindings.VERSIONS[-1]


@pytest.fixture(scope="session")
def onnx(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return bundles.onnx_bundle(tmp_path_factory.mktemp("standard") / "voice", tiny_checkpoint)
