"""CUDA graphs: work that is put into a stream again and again is recorded once and then launched as a whole.

That spares the host the calls for each part. pycuda has no interface for graphs, so the driver's is called.
What is recorded takes memory of its own, so that is done in the warm-up, and never after `seal`.
Loading thread until READY, then the engine thread. Neighbours: `trt_context` runs steps through this,
`cuda_driver` makes the calls.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING

from edged import log
from edged.engine.cuda_driver import Driver
from edged.errors import CudaError, EngineError

if TYPE_CHECKING:
    from edged.engine.cuda import Stream

logger = logging.getLogger(__name__)

THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: what other threads call does not end the recording
MOST = 64  # graphs; keys that differ from run to run would otherwise take memory without end


class StepGraphs:
    """Runs work by a key: plainly the first time, recorded the second time, launched from then on. What was
    not recorded when `seal` is called runs plainly for ever.

    The work of a key always does the same, with the same addresses and shapes, and puts it into this stream
    only; it does not wait for the device. Where the driver or the work does not allow recording, that is
    logged once and everything runs plainly.

    enabled: False runs everything plainly.
    """

    def __init__(self, stream: Stream, enabled: bool) -> None:
        self._stream = ctypes.c_void_p(stream.handle)
        self._records = enabled
        self._driver: Driver | None = None
        self._seen: set[Hashable] = set()
        self._graphs: dict[Hashable, ctypes.c_void_p] = {}

    def run(self, key: Hashable, work: Callable[[], None]) -> None:
        """Puts the work into the stream. Raises what the work raises, and `CudaError` for a failed launch."""
        if self._records and key in self._seen and key not in self._graphs:
            self._record(key, work)
        if self._driver is not None and key in self._graphs:
            self._driver.call("cuGraphLaunch", self._graphs[key], self._stream)
            return
        work()
        if len(self._seen) < MOST:
            self._seen.add(key)

    @property
    def recorded(self) -> int:
        """How many graphs there are."""
        return len(self._graphs)

    def forget(self) -> None:
        """Destroys the graphs, with which the device must have finished; every key begins anew.

        For when something that the work uses has changed, such as the shapes of TensorRT's context: what was
        recorded from it must not be launched any more, even if it changes back.
        """
        self._seen.clear()
        while self._driver is not None and self._graphs:
            _, graph = self._graphs.popitem()
            self._driver.call("cuGraphExecDestroy", graph)

    def seal(self) -> None:
        """Records no more: what takes memory has been done."""
        self._records = False

    def close(self) -> None:
        """Destroys the graphs, with which the device must have finished; afterwards all runs plainly."""
        self._records = False
        self.forget()

    def _record(self, key: Hashable, work: Callable[[], None]) -> None:
        """Keeps a graph of the work, which is not done by that; or records no more where that cannot be."""
        try:
            self._driver = driver = self._driver or Driver()
            recorded = self._recorded(driver, work)
            try:
                graph = ctypes.c_void_p()
                flags = ctypes.c_ulonglong(0)
                driver.call("cuGraphInstantiateWithFlags", ctypes.byref(graph), recorded, flags)
            finally:
                driver.call("cuGraphDestroy", recorded)
        except EngineError as error:
            log.event(logger, logging.INFO, f"steps run without CUDA graphs: {error.message}")
            self._records = False
        else:
            self._graphs[key] = graph

    def _recorded(self, driver: Driver, work: Callable[[], None]) -> ctypes.c_void_p:
        recorded = ctypes.c_void_p()
        driver.call("cuStreamBeginCapture_v2", self._stream, ctypes.c_int(THREAD_LOCAL))
        try:
            work()
        except BaseException:
            with suppress(CudaError):  # a stream that still records can do nothing else
                driver.call("cuStreamEndCapture", self._stream, ctypes.byref(recorded))
            if recorded:
                driver.call("cuGraphDestroy", recorded)
            raise
        driver.call("cuStreamEndCapture", self._stream, ctypes.byref(recorded))
        return recorded
