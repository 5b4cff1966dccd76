"""The loudspeaker: present or not, its ring, and opening, closing and reopening its stream.

Everything here runs on the thread `edged-player`; others only read `error`, `name` and `underruns`.
Neighbours: `player` owns the one `Loudspeaker`, `find` looks for the device, `output` is the stream.
"""

from __future__ import annotations

import logging
from time import monotonic

from edged.audio.fader import Fader
from edged.audio.find import find, refresh
from edged.audio.output import STALL_S, Output, Speaker
from edged.audio.ring import Ring
from edged.errors import NoAudioDevice
from edged.job import Samples
from edged.log import event as log_event
from edged.settings import Audio

log = logging.getLogger("edged.audio")

RING_S = 2.0  # how long the engine may pause between two jobs, or stumble, without being heard
REOPENINGS = 3  # in a row, without PROGRESS_S of audio between them: then the device counts as lost
REOPENING_S = 5.0  # and so long after the first of them at most
PROGRESS_S = 0.5
TELL_EVERY_S = 5.0  # one line in the log for a burst of underruns


def ring_frames(settings: Audio, rate: int) -> tuple[int, int]:
    """Frames of the ring, and how many of them stay behind the reader: what a stall may leave unplayed."""
    keep = int(settings.latency_ms * rate / 1000)
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
        self._settings = settings
        self._voice_rate = voice_rate
        self._memory = memory
        self._fader = fader
        self._speaker: Speaker | None = None
        self._stale = False  # PortAudio's list of devices may be out of date
        self._gaps = 0  # underruns of rings that are gone
        self._xruns = 0  # those of streams that are gone, and reopenings
        self._lead_s = 0.0  # of the open stream
        self._reopenings = 0  # since the audio went on at `_stuck_at`, a position in the ring
        self._stuck_at = 0
        self._stuck_since = 0.0
        self._told = 0  # device underruns that the log knows of
        self._told_at = 0.0
        if not settings.enabled:
            self.error = NoAudioDevice("the loudspeaker is switched off", "set audio.enabled to true")

    @property
    def latency_s(self) -> float:
        output = self.output
        return output.latency_s if output else self._settings.latency_ms / 1000

    @property
    def tail_s(self) -> float:
        """How long the stream must stay open after the last sample, or the last word is clipped."""
        return 2.0 * self.latency_s + self._settings.trail_ms / 1000

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
    def device_underruns(self) -> int:
        output = self.output
        return self._xruns + (output.xruns if output else 0)

    @property
    def underruns(self) -> int:
        return self._gaps + self.ring.underruns + self.device_underruns

    def probe(self) -> None:
        """Looks for the device and makes its ring, without opening a stream. `error` says how it went."""
        error: NoAudioDevice | None = None
        speaker: Speaker | None = None
        try:
            if Output.hung():
                raise NoAudioDevice("the sound server does not answer", "restart the sound server")
            if self._stale:
                refresh()
            speaker = find(self._settings, self._voice_rate)
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
                self.ring = Ring(frames, speaker.channels, keep, self._memory, self._fader)
            if speaker.name != self.name:
                log.info("loudspeaker %r, %d Hz, %d channels", speaker.name, speaker.rate, speaker.channels)
        elif str(error) != str(self.error or ""):
            log_event(log, logging.WARNING, f"no loudspeaker: {error}", code=NoAudioDevice.code)
        self.name = speaker.name if speaker else ""
        self._speaker, self._stale = speaker, speaker is None
        self.error, self.checked_at = error, monotonic()

    def open(self) -> bool:
        """Opens the stream. When it cannot, `error` says why."""
        for _ in range(2):
            if self._speaker is None or Output.hung():
                self.probe()
            if self._speaker is None:
                return False
            self.ring.reset()
            self._lead_s = self._settings.lead_in_ms / 1000
            self._reopenings = 0
            try:
                self._start(self._speaker)
                return True
            except NoAudioDevice as exc:  # perhaps only its number changed: look again, once
                self._speaker, self._stale = None, True
                self.error, self.checked_at = exc, monotonic()
        log_event(log, logging.WARNING, f"no loudspeaker: {self.error}", code=NoAudioDevice.code)
        return False

    def _start(self, speaker: Speaker) -> None:
        self.output = Output.open(speaker, self.ring, self._settings.latency_ms / 1000)
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
        self._lead_s = 0.0  # it is awake
        try:
            self._start(speaker)
        except NoAudioDevice as exc:
            log.info("%s", exc)
            return False
        return True

    def tell_underruns(self, now: float) -> None:
        """One line in the log when the device ran dry."""
        count = self.device_underruns
        if count > self._told and (now - self._told_at > TELL_EVERY_S or not self._told_at):
            log_event(
                log,
                logging.WARNING,
                f"sound underrun: the loudspeaker {self.name!r} was not fed in time ({count} so far); "
                f"raise audio.latency_ms (now {self._settings.latency_ms}) if this repeats",
                code="sound_underrun",
                phase="delivery",
            )
            self._told_at = now
        self._told = count

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
        unplayed = output.unplayed
        recent = output.frames - output.xrun_at < output.speaker.rate * STALL_S
        if not (output.xruns and recent):  # otherwise this gap is counted already
            self._xruns += 1
        self.close()
        return unplayed
