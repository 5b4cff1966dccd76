"""The loudspeaker: present or not, its ring, and opening, closing and reopening its stream.

Everything here runs on the thread `edged-player`; others only read `error`, `name` and `underruns`.
Neighbours: `player` owns the one `Loudspeaker`, `find` looks for the device, `output` is the stream.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection
from time import monotonic

from edged.audio.fader import Fader
from edged.audio.find import find, refresh
from edged.audio.match import longest_latency_ms, settings_for
from edged.audio.output import NO_ANSWER, STALL_S, Output, Speaker
from edged.audio.ring import Ring
from edged.audio.telling import Telling
from edged.errors import NoAudioDevice
from edged.job import Samples
from edged.log import event as log_event
from edged.settings import Audio

log = logging.getLogger("edged.audio")

RING_S = 2.0  # how long the engine may pause between two jobs, or stumble, without being heard
REOPENINGS = 3  # in a row, without PROGRESS_S of audio between them: then the device counts as lost
REOPENING_S = 5.0  # and so long after the first of them at most
PROGRESS_S = 0.5
RETURN_S = 3.0  # a fall-back that is idle for so long is closed, and a device before it is looked for


def ring_frames(settings: Audio, rate: int) -> tuple[int, int]:
    """Frames of the ring, and how many of them stay behind the reader: what a stall may leave unplayed."""
    keep = int(longest_latency_ms(settings) * rate / 1000)
    return int(RING_S * rate) + keep, keep


class Loudspeaker:
    """The device that the settings name, present or not, its ring and its stream while one is open."""

    def __init__(
        self,
        settings: Audio,
        voice_rate: int,
        memory: Samples | None = None,
        fader: Fader | None = None,
    ) -> None:
        """memory: for the ring; a device that takes more (more channels, a higher rate) gets its own. fader:
        the same for every ring."""
        self.error: NoAudioDevice | None = None
        self.name = ""
        self.output: Output | None = None
        self.ring = Ring(1, 1, fader=fader)
        self.checked_at = 0.0
        self.handed = 0  # frames that the last stream took and a dead device has not played
        self._settings = settings
        self._own = settings  # with what differs for the device
        self._voice_rate = voice_rate
        self._memory = memory
        self._fader = fader
        self._speaker: Speaker | None = None
        self._rate = 0  # of the ring
        self._before_s = 0.0  # played from rings that are gone
        self._stale = False  # PortAudio's list of devices may be out of date
        self._gaps = 0  # underruns of rings that are gone
        self._xruns = 0  # those of streams that are gone, and reopenings
        self._lead_s = 0.0  # of the open stream
        self._reopenings = 0  # since the audio went on at `_stuck_at`, a position in the ring
        self._stuck_at = 0
        self._stuck_since = 0.0
        self._telling = Telling()
        if not settings.enabled:
            self.error = NoAudioDevice("the loudspeaker is switched off", "set audio.enabled to true")

    @property
    def latency_s(self) -> float:
        output = self.output
        return output.latency_s if output else self._own.latency_ms / 1000

    @property
    def tail_s(self) -> float:
        """How long the stream must stay open after the last sample, or the last word is clipped."""
        return 2.0 * self.latency_s + self._own.trail_ms / 1000

    @property
    def keep_open_s(self) -> float:
        return min(self._own.keep_open_s, RETURN_S) if self._falls_back else self._own.keep_open_s

    @property
    def _falls_back(self) -> bool:
        return self._speaker is not None and self._speaker.entry > 1

    @property
    def lead_s(self) -> float:
        """What the device still lacks of its lead-in: silence it may swallow while it wakes up.

        The callback plays that silence by itself while the ring is empty, from the opening on.
        """
        output = self.output
        return max(0.0, self._lead_s - (output.frames / output.speaker.rate if output else 0.0))

    @property
    def cold(self) -> bool:
        return self.output is None or self.lead_s > 0.0

    @property
    def ahead_s(self) -> float:
        """How long it takes until a sample that is written now is heard."""
        output = self.output
        backlog_s = self.ring.backlog / output.speaker.rate if output else 0.0
        return self.lead_s + backlog_s + self.latency_s

    @property
    def unheard(self) -> int:
        """Frames of audio that the open device has taken and not played yet."""
        output = self.output
        return output.handed if output else 0

    @property
    def played_s(self) -> float:
        """Since the start."""
        return self._before_s + (self.ring.read / self._rate if self._rate else 0.0)

    @property
    def device_underruns(self) -> int:
        output = self.output
        return self._xruns + (output.xruns if output else 0)

    @property
    def underruns(self) -> int:
        return self._gaps + self.ring.underruns + self.device_underruns

    def probe(self, shape: tuple[int, int] | None = None, without: Collection[str] = ()) -> None:
        """Looks for the device and makes its ring, without opening a stream. `error` says how it went.

        shape: the rate and channels to have if it can be. without: devices that cannot be opened.
        """
        error: NoAudioDevice | None = None
        speaker: Speaker | None = None
        try:
            if Output.hung():
                raise NoAudioDevice(f"the sound server {NO_ANSWER}", "restart the sound server")
            speaker = Output.bounded(lambda: self._find(shape, without), "the sound server")
        except NoAudioDevice as exc:
            error = exc
        except Exception as exc:  # whatever a driver does, jobs that need no loudspeaker go on
            text = "looking for the audio device failed"
            log_event(log, logging.ERROR, text, exc_info=True, code=NoAudioDevice.code)
            error = NoAudioDevice(f"looking for the audio device failed: {type(exc).__name__}")
        if speaker is not None:
            frames, keep = ring_frames(self._settings, speaker.rate)
            if (self.ring.frames, self.ring.channels) != (frames, speaker.channels):
                self._gaps += self.ring.underruns
                self._before_s = self.played_s
                self.ring = Ring(frames, speaker.channels, keep, self._memory, self._fader)
            self._rate = speaker.rate
            self._own = settings_for(self._settings, speaker.name)
            self._telling.seen(speaker)
        elif error is not None and not without:
            self._telling.none(error)
        self.name = speaker.name if speaker else ""
        self._speaker, self._stale = speaker, speaker is None
        self.error, self.checked_at = error, monotonic()

    def _find(self, shape: tuple[int, int] | None, without: Collection[str]) -> Speaker:
        if self._stale:
            refresh()
        return find(self._settings, self._voice_rate, shape, without)

    def look_back(self) -> None:
        """With the stream closed: whether a device that comes before the fall-back is there again."""
        if self._falls_back and monotonic() - self.checked_at >= RETURN_S:
            self._stale = True
            self.probe()

    def open(self) -> bool:
        """Opens the stream, on a fall-back if need be. When it cannot, `error` says why."""
        self.look_back()
        return self._open(None, hold=False)

    def resume(self) -> bool:
        """After a loss: looks for a device, and plays on what is in the ring, if the device takes its shape.

        Otherwise there is another, empty `ring`. False: there is no device yet; `error` says why.
        """
        return self._open((self._rate, self.ring.channels) if self._rate else None, hold=True)

    def _open(self, shape: tuple[int, int] | None, hold: bool) -> bool:
        ring, refused = self.ring, Counter[str]()
        error: NoAudioDevice | None = None
        self._reopenings = 0
        while True:
            if self._speaker is None or Output.hung():
                # Twice each: perhaps only its number has changed.
                self.probe(shape, [name for name, times in refused.items() if times > 1])
            if self._speaker is None:
                if error is not None:
                    self.error = error
                    self._telling.none(error)
                return False
            if not hold or self.ring is not ring:
                self.ring.reset()
            try:
                self._start(self._speaker, self._own.lead_in_ms / 1000, hold)
            except NoAudioDevice as exc:
                refused[self._speaker.name] += 1
                self._speaker, self._stale = None, True
                error = error or exc
                self.error, self.checked_at = error, monotonic()
                continue
            self._telling.opened(self._speaker)
            return True

    def _start(self, speaker: Speaker, lead_s: float, hold: bool = False) -> None:
        """hold: what is in the ring waits until the lead-in is over."""
        latency_s = self._own.latency_ms / 1000
        self.output = Output.open(speaker, self.ring, latency_s, lead_s if hold else 0.0)
        self._lead_s = lead_s
        log.debug("audio stream opened, latency %.0f ms", self.latency_s * 1000)

    def reopen(self, now: float) -> bool:
        """After a stall, with the stream closed and the ring rewound: plays on from there.

        False: the device is gone or hangs, or it opens but takes no audio time and again.
        """
        speaker, at = self._speaker, self.ring.read
        if speaker is None or Output.hung():
            return False
        if self._reopenings == 0 or at - self._stuck_at > PROGRESS_S * speaker.rate:
            self._reopenings, self._stuck_at, self._stuck_since = 0, at, now
        self._reopenings += 1
        if self._reopenings > REOPENINGS or now - self._stuck_since > REOPENING_S:
            return False
        try:
            self._start(speaker, 0.0)  # it is awake
        except NoAudioDevice as exc:
            log.debug("%s", exc)
            return False
        return True

    def tell_lost(self) -> None:
        self._telling.lost(self.name, self.device_underruns)

    def tell_underruns(self, now: float) -> None:
        """One line in the log when the device ran dry."""
        self._telling.underruns(self.name, self.device_underruns, self._own.latency_ms, now)

    def close(self, lost: bool = False) -> None:
        """Closes the stream, at once. After a loss the next opening looks for the device anew."""
        output, self.output = self.output, None
        if output is not None:
            self._xruns += output.xruns
            output.close()
            log.debug("audio stream closed")
        if lost:
            self._speaker, self._stale = None, True

    def stop_stalled(self) -> int:
        """Closes a stalled stream; returns the frames of the ring that it took and did not play."""
        output = self.output
        if output is None:
            return 0
        unplayed, self.handed = output.unplayed, output.handed
        recent = output.frames - output.xrun_at < output.speaker.rate * STALL_S
        if not (output.xruns and recent):  # otherwise this gap is counted already
            self._xruns += 1
        self.close()
        return unplayed
