"""What native libraries raise, as `EngineError`: the one place that turns one into the other.

Any thread. Neighbours: every module that calls into an inference runtime.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from edged.errors import EdgedError, EngineError, TensorRTMissing

UNLOADABLE = (ImportError, OSError, RuntimeError, AttributeError)  # a module, its libraries, or a half of it
LONGEST = 300  # characters of a native message that are kept


@contextmanager
def native_errors(what: str) -> Iterator[None]:
    """what: was being done, for the message. Errors that have their type already pass."""
    try:
        yield
    except EdgedError:
        raise
    except MemoryError as error:
        raise EngineError(f"{what}: out of memory", "free memory on this machine") from error
    except Exception as error:  # the runtimes' exceptions share no base class of their own
        raise EngineError(f"{what}: {first_line(str(error)) or type(error).__name__}") from error


def unloadable(error: BaseException) -> TensorRTMissing:
    """What importing TensorRT raised, one of `UNLOADABLE`."""
    told = f"TensorRT cannot be loaded: {first_line(str(error)) or type(error).__name__}"
    if isinstance(error, ModuleNotFoundError) and error.name == "tensorrt":
        return TensorRTMissing(told)
    return TensorRTMissing(
        told,
        "its package is there, but not all that it needs, or not of one version: reinstall it (on a Jetson: "
        "sudo apt install --reinstall tensorrt python3-libnvinfer)",
    )


def let_go(error: BaseException | None) -> None:
    """Empties the frames that an error has come through, and those of its causes, as far as they have ended.

    Half-made native objects are held there, and must be gone before the memory and the context that they
    were made in: else their own end is a call into what is no more.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0][:LONGEST] if lines else ""
