"""Tests of this folder run in a forked process with real pycuda on a stand-in for the driver, and with the real
bindings of TensorRT, whose engines are stand-ins."""

from __future__ import annotations

import pytest

from tests.cuda.conftest import gpu, libcuda, pytest_pyfunc_call  # noqa: F401
from tests.trt import bindings


@pytest.fixture(params=bindings.VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Of the bindings."""
    reason = bindings.unavailable(request.param)
    if reason:
        pytest.skip(reason)
    return str(request.param)
