"""One open PortAudio stream that plays the ring, and the stall timer that notices when it does not.

Watched on the thread `edged-player`; opened and closed for it on threads of their own, because a sound
server that hangs hangs its clients too. PortAudio calls `Output._callback` on yet another thread: it
copies from the ring, counts, and does nothing else. Neighbours: `device`, `ring`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from edged.audio.ring import Ring
from edged.errors import NoAudioDevice
from edged.threads import hurry

T = TypeVar("T")

STALL_S = 0.4  # no callback for so long: the device is gone, though PortAudio says nothing
STALL_SHARE = 0.4  # of the latency, where that is longer: a device asks for a quarter of it at a time
START_GRACE_S = 3.0  # the same just after opening: a sleeping sink takes up to 2 s to ask for more
RHYTHM = 5  # looks that found new callbacks: then it is awake, and this grace over
STALL_LOOKS = 5  # and so many looks in a row, so that a process that was stopped does not blame the device
CLOSE_WAIT_S = 1.0
INSTALL = "apt install libportaudio2 libasound2-plugins"
REINSTALL = "install edged again, in its own environment"
OPEN_WAIT_S = 5.0  # a sleeping Bluetooth loudspeaker needs a while
NO_ANSWER = "does not answer"


@dataclass(frozen=True, slots=True)
class Speaker:
    """What will be opened: PortAudio's index, the name, and what the device takes. entry: the place in
    `audio.device` that means it, from 1; all but the first are fall-backs."""

    index: int
    name: str
    rate: int
    channels: int
    entry: int = 1


def portaudio() -> Any:
    """The module `sounddevice`. Imported late: its import fails where PortAudio is not installed."""
    try:
        import sounddevice
    except ImportError:
        raise NoAudioDevice("the Python package sounddevice is not installed", REINSTALL) from None
    except OSError:
        raise NoAudioDevice("PortAudio is not installed", INSTALL) from None
    except Exception as exc:  # sounddevice.PortAudioError cannot be named before the import
        raise NoAudioDevice(f"PortAudio cannot start: {exc}") from None
    return sounddevice


def reason(exc: Exception) -> str:
    return str(exc.args[0]) if exc.args else type(exc).__name__


class Output:
    """One open stream that plays the ring. `Output.open` makes it."""

    _stuck: ClassVar[list[threading.Thread]] = []  # threads that open or close a stream, and are slow

    def __init__(self, speaker: Speaker, ring: Ring, latency_s: float, lead_s: float = 0.0) -> None:
        """lead_s: silence before anything of the ring is played."""
        sd = portaudio()
        self.speaker = speaker
        self.frames = 0  # asked for by the device so far, silence included
        self.xruns = 0  # the device ran dry while it played audio; stored by the callback
        self.xrun_at = 0  # `frames` at the last time
        self._hush = 0  # frames of silence since the last audio frame
        self._ring = ring
        self._lead = int(lead_s * speaker.rate)
        self._beats = 0
        self._seen = -1
        self._looks = 0
        self._progress = 0  # looks that found new callbacks
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
                self._close()
            message = f"the audio device {speaker.name!r} cannot be opened: {reason(exc)}"
            raise NoAudioDevice(message) from None
        self.latency_s = float(self._stream.latency)
        self.latency_frames = int(self.latency_s * speaker.rate)

    def _callback(self, out: Any, frames: int, time: Any, status: Any) -> None:
        if not self._beats:  # PortAudio has just made this thread
            hurry()
        # A raw stream gives a plain buffer; a view of it is all that is made here.
        frame_view = np.frombuffer(out, dtype=np.float32).reshape(frames, self.speaker.channels)
        if self.frames < self._lead:
            frame_view.fill(0.0)
            audio = 0
        else:
            audio = self._ring.read_into(frame_view)
        if audio and not self._hush and status.output_underflow:  # else it ran dry in silence
            self.xruns += 1
            self.xrun_at = self.frames
        self.frames += frames
        self._hush = frames - audio + (0 if audio else self._hush)
        self._beats += 1

    @property
    def unplayed(self) -> int:
        """Of a stalled stream: frames of audio that the device took and has not played.

        A device that asks for no more still has a full buffer. A stream that PortAudio gave up has none.
        """
        return self.handed if self._stream.active else 0

    @property
    def handed(self) -> int:
        """Frames of audio in the device's buffer, if it was full: what a dead device has not played."""
        return max(0, min(self.frames, self.latency_frames) - self._hush)

    def stalled(self, now: float) -> bool:
        """True when the device no longer takes audio. To be called a few times a second."""
        if not self._stream.active:
            return True
        if self._beats != self._seen:
            self._opened = self._opened or now
            self._seen, self._since, self._looks = self._beats, now, 0
            self._progress += 1
            return False
        self._looks += 1
        usual = max(STALL_S, STALL_SHARE * self.latency_s)
        waking = self._progress < RHYTHM and now - self._opened < START_GRACE_S
        limit = START_GRACE_S if waking else usual
        return self._looks >= STALL_LOOKS and now - self._since > limit

    @classmethod
    def open(cls, speaker: Speaker, ring: Ring, latency_s: float, lead_s: float = 0.0) -> Output:
        """Opens and starts a stream within `OPEN_WAIT_S`, or raises `NoAudioDevice`."""
        what = f"the audio device {speaker.name!r}"
        return cls.bounded(lambda: cls(speaker, ring, latency_s, lead_s), what, cls._close)

    @classmethod
    def bounded(cls, ask: Callable[[], T], what: str, undo: Callable[[T], object] = lambda _: None) -> T:
        """The result of `ask` within `OPEN_WAIT_S`, or `NoAudioDevice`. undo: for one that comes later."""
        asked: Future[T] = Future()

        def work() -> None:
            try:
                result = ask()
            except Exception as exc:
                with contextlib.suppress(InvalidStateError):  # nobody waits any more
                    asked.set_exception(exc)
                return
            try:
                asked.set_result(result)
            except InvalidStateError:
                undo(result)

        worker = threading.Thread(target=work, name="edged-audio-open", daemon=True)
        worker.start()
        try:
            return asked.result(OPEN_WAIT_S)
        except FutureTimeout:
            if not asked.cancel():  # it came at the last moment
                return asked.result()
        cls._stuck.append(worker)
        raise NoAudioDevice(f"{what} {NO_ANSWER}", "restart the sound server")

    def close(self) -> None:
        """Stops at once, and waits for `CLOSE_WAIT_S` at most."""
        closer = threading.Thread(target=self._close, name="edged-audio-close", daemon=True)
        closer.start()
        closer.join(CLOSE_WAIT_S)
        if closer.is_alive():
            self._stuck.append(closer)

    @classmethod
    def hung(cls) -> bool:
        """A stream is still being opened or closed: to open another, or to restart PortAudio, would hang."""
        cls._stuck[:] = [thread for thread in cls._stuck if thread.is_alive()]
        return bool(cls._stuck)

    def _close(self) -> None:
        sd = portaudio()
        try:
            self._stream.abort()
            self._stream.close()
        except sd.PortAudioError:
            return  # the device is gone, and so is the stream
