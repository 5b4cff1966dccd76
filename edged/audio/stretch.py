"""Another speed and pitch for audio that a voice has made: libsonic behind one call, by ctypes.

The engine thread uses it. Neighbours: `outflow` sends an utterance through a stretcher of its own where its
job asks for what the voice cannot do itself; `edged.doctor` says whether the library is there.
"""

from __future__ import annotations

import ctypes
import weakref

import numpy as np

from edged.errors import InternalError
from edged.job import Samples

LIBRARY = "libsonic.so.0"
INSTALL = "apt install libsonic0"
# The library takes and gives a block at a time, so that its buffers stay small however long an utterance is.
BLOCK = 4096
# It works on 16 bits: what is above 1 must get through it, and is for the limiter behind it.
HEADROOM = np.float32(2.0)


def frequency_factor(semitones: float) -> float:
    """Of a change of pitch."""
    return float(2.0 ** (semitones / 12.0))


class Library:
    """libsonic's functions. Raises `OSError` where it is not installed, or is none."""

    def __init__(self) -> None:
        native = ctypes.CDLL(LIBRARY)
        handle, whole, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_float
        try:
            self.create = native.sonicCreateStream
            self.destroy = native.sonicDestroyStream
            self.set_speed = native.sonicSetSpeed
            self.set_pitch = native.sonicSetPitch
            self.write = native.sonicWriteFloatToStream
            self.available = native.sonicSamplesAvailable
            self.read = native.sonicReadFloatFromStream
            self.flush = native.sonicFlushStream
        except AttributeError as error:
            raise OSError(str(error)) from None
        self.create.argtypes, self.create.restype = [whole, whole], handle
        self.destroy.argtypes, self.destroy.restype = [handle], None
        for setter in (self.set_speed, self.set_pitch):
            setter.argtypes, setter.restype = [handle, real], None
        for mover in (self.write, self.read):
            mover.argtypes, mover.restype = [handle, handle, whole], whole
        for asker in (self.available, self.flush):
            asker.argtypes, asker.restype = [handle], whole


def library() -> Library | None:
    """None where it cannot be loaded."""
    try:
        return Library()
    except OSError:
        return None


class Stretcher:
    """One utterance, mono, in feeds of any size; the sum is as if done in one piece.

    rate: in Hz. speed, pitch: factors of the pace and of the frequencies; neither changes the other. Up to
    some 30 ms are held back until it is known what follows. Raises `InternalError` when memory is short.
    """

    def __init__(self, library: Library, rate: int, speed: float, pitch: float) -> None:
        self._library = library
        self._handle = library.create(rate, 1)
        if not self._handle:
            raise InternalError("no memory to change the speed or pitch")
        self._free = weakref.finalize(self, library.destroy, self._handle)
        library.set_speed(self._handle, speed)
        library.set_pitch(self._handle, pitch)
        self._fed = False

    def feed(self, samples: Samples, last: bool = False) -> Samples:
        """What is ready, the receiver's own. last: nothing follows, and all the rest is given."""
        made = []
        for at in range(0, samples.size, BLOCK):
            piece = np.clip(samples[at : at + BLOCK] / HEADROOM, -1.0, 1.0, dtype=np.float32)
            self._done(self._library.write(self._handle, piece.ctypes.data, piece.size))
            self._fed = True
            made.append(self._ready())
        if last and self._fed:  # of nothing it would make silence
            self._done(self._library.flush(self._handle))
            made.append(self._ready())
        return np.concatenate(made) if made else np.zeros(0, np.float32)

    def close(self) -> None:
        """Frees it; may be called twice. Nothing is fed after it."""
        self._free()

    def _ready(self) -> Samples:
        samples = np.empty(self._library.available(self._handle), np.float32)
        got = self._library.read(self._handle, samples.ctypes.data, samples.size)
        return np.asarray(samples[:got] * HEADROOM, np.float32)

    def _done(self, succeeded: int) -> None:
        if not succeeded:
            raise InternalError("no memory to change the speed or pitch")
