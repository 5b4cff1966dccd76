"""What an application imports: `from edged.client import Client, AsyncClient`.

Light on purpose: pyzmq and msgspec, no numpy, no ONNX Runtime, no thread of its own. `connection` is the
socket and the waiting calls, `blocking` and `aio` put a face on it, `results` is what comes back.
asyncio costs 40 ms to import, so `AsyncClient` is loaded when it is first named. Every failure is one of
the classes in `edged.errors`.

    with Client() as edged:
        edged.speak("Door open.", priority="important")
        for chunk in edged.stream("A long text ..."):
            play(chunk.data)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edged.client.blocking import Client, Stream, Writing
from edged.client.endpoint import Curve
from edged.client.results import Chunk, Synthesis
from edged.protocol import Accepted, Done, Explained

if TYPE_CHECKING:
    from edged.client.aio import AsyncClient, AsyncStream, AsyncWriting

__all__ = [
    "Accepted",
    "AsyncClient",
    "AsyncStream",
    "AsyncWriting",
    "Chunk",
    "Client",
    "Curve",
    "Done",
    "Explained",
    "Stream",
    "Synthesis",
    "Writing",
]


def __getattr__(name: str) -> Any:
    if name in ("AsyncClient", "AsyncStream", "AsyncWriting"):
        from edged.client import aio

        return getattr(aio, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
