"""Every test of this folder runs in a forked process, which loads the stand-in for the driver and ends."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from multiprocessing import Pipe
from pathlib import Path

import pytest

from tests.cuda import fake


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = fake.unavailable()
    if reason:
        pytest.skip(reason)
    return fake.build(tmp_path_factory.mktemp("cuda"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if "gpu" not in pyfuncitem.fixturenames:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    kind, text = _in_a_child(pyfuncitem, arguments)
    if kind != "passed":
        pytest.fail(text, pytrace=False)
    return True


@pytest.fixture
def gpu(libcuda: Path) -> Path:
    """The stand-in: replaced by its books, `fake.Fake`, in the process of the test."""
    return libcuda


def _in_a_child(item: pytest.Function, arguments: dict[str, object]) -> tuple[str, str]:
    ours, theirs = Pipe()
    child = os.fork()
    if not child:
        result = "failed", "the test ended the process"
        try:
            sys.path.insert(0, str(fake.PREPARED))
            item.obj(**{**arguments, "gpu": fake.Fake(arguments["gpu"])})  # type: ignore[arg-type]
            result = "passed", ""
        except BaseException:
            result = "failed", traceback.format_exc()
        finally:
            theirs.send(result)
            os._exit(0)
    theirs.close()
    try:
        return ours.recv()  # type: ignore[no-any-return]
    except EOFError:
        return "failed", "the process of the test died"
    finally:
        _end(child)


def _end(child: int) -> None:
    done, _ = os.waitpid(child, os.WNOHANG)
    if not done:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
