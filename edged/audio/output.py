"""One open PortAudio stream that plays the ring, and the stall timer that notices when it does not.

Made, watched and closed on the thread `edged-player`, except `Output._callback`, which PortAudio calls on
a thread of its own: it copies from the ring, counts, and does nothing else. Neighbours: `device`, `ring`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from edged.audio.ring import Ring
from edged.errors import NoAudioDevice

STALL_S = 0.5  # no callback for so long: the device is gone, though PortAudio says nothing
START_GRACE_S = 3.0  # the same just after opening: a sleeping sink takes up to 2 s to ask for more
STALL_LOOKS = 5  # and so many looks in a row, so that a process that was stopped does not blame the device
CLOSE_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Speaker:
    """What will be opened: PortAudio's index, the name, and what the device takes."""

    index: int
    name: str
    rate: int
    channels: int


def portaudio() -> Any:
    """The module `sounddevice`. Imported late: its import fails where PortAudio is not installed."""
    try:
        import sounddevice
    except ImportError:
        raise NoAudioDevice("the Python package sounddevice is not installed") from None
    except OSError:
        raise NoAudioDevice("PortAudio is not installed") from None
    except Exception as exc:  # sounddevice.PortAudioError cannot be named before the import
        raise NoAudioDevice(f"PortAudio cannot start: {exc}") from None
    return sounddevice


def reason(exc: Exception) -> str:
    return str(exc.args[0]) if exc.args else type(exc).__name__


class Output:
    """One open stream that plays the ring. Made and closed by the player thread."""

    _closing: ClassVar[list[threading.Thread]] = []  # of streams that were slow to close

    def __init__(self, speaker: Speaker, ring: Ring, latency_s: float) -> None:
        sd = portaudio()
        self.speaker = speaker
        self.frames = 0  # asked for by the device so far, silence included
        self.xruns = 0  # the device ran dry while it played audio; stored by the callback
        self._ring = ring
        self._beats = 0
        self._seen = -1
        self._looks = 0
        self._opened = self._since = 0.0
        self._stream: Any = None
        try:
            self._stream = sd.RawOutputStream(
                device=speaker.index,
                channels=speaker.channels,
                samplerate=speaker.rate,
                dtype="float32",
                latency=latency_s,
                callback=self._callback,
            )
            self._stream.start()
        except (sd.PortAudioError, ValueError) as exc:
            if self._stream is not None:
                self.close()
            message = f"the audio device {speaker.name!r} cannot be opened: {reason(exc)}"
            raise NoAudioDevice(message) from None
        self.latency_s = float(self._stream.latency)

    def _callback(self, out: Any, frames: int, time: Any, status: Any) -> None:
        # A raw stream gives a plain buffer; a view of it is all that is made here.
        frame_view = np.frombuffer(out, dtype=np.float32).reshape(frames, self.speaker.channels)
        audio = self._ring.read_into(frame_view)
        if audio and status.output_underflow:
            self.xruns += 1
        self.frames += frames
        self._beats += 1

    def stalled(self, now: float) -> bool:
        """True when the device no longer takes audio. To be called a few times a second."""
        if not self._stream.active:
            return True
        if self._beats != self._seen:
            self._opened = self._opened or now
            self._seen, self._since, self._looks = self._beats, now, 0
            return False
        self._looks += 1
        limit = START_GRACE_S if now - self._opened < START_GRACE_S else STALL_S
        return self._looks >= STALL_LOOKS and now - self._since > limit

    def close(self) -> None:
        """Stops at once. On a thread of its own, because a hung sound server hangs its clients too."""
        closer = threading.Thread(target=self._close, name="edged-audio-close", daemon=True)
        closer.start()
        closer.join(CLOSE_WAIT_S)
        if closer.is_alive():
            self._closing.append(closer)

    @classmethod
    def hung(cls) -> bool:
        """A stream is still being closed: opening another, or restarting PortAudio, would hang as well."""
        cls._closing[:] = [closer for closer in cls._closing if closer.is_alive()]
        return bool(cls._closing)

    def _close(self) -> None:
        sd = portaudio()
        try:
            self._stream.abort()
            self._stream.close()
        except sd.PortAudioError:
            return  # the device is gone, and so is the stream
