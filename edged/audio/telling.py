"""What the log says of a loudspeaker: one line when it is lost, one when it is there, underruns now and then.

Thread `edged-player`. Neighbour: `device` calls it.
"""

from __future__ import annotations

import logging

from edged.audio.output import Speaker
from edged.errors import AudioDeviceLost, NoAudioDevice
from edged.log import event as log_event

log = logging.getLogger("edged.audio")

TELL_EVERY_S = 5.0  # one line in the log for a burst of underruns


class Telling:
    """missing: the log says that there is no device, and no line tells so again until it is there."""

    def __init__(self) -> None:
        self.missing = False
        self._name = ""  # of the device that the log names
        self._underruns = 0  # that the log knows of
        self._told_at = 0.0

    def seen(self, speaker: Speaker) -> None:
        """At the start. Later only what opens is told: a name may be listed without a device."""
        if not self.missing and not self._name:
            self._tell(speaker)

    def opened(self, speaker: Speaker) -> None:
        if self.missing or speaker.name != self._name:
            self._tell(speaker)

    def _tell(self, speaker: Speaker) -> None:
        self.missing, self._name = False, speaker.name
        log.info("loudspeaker %r, %d Hz, %d channels", speaker.name, speaker.rate, speaker.channels)

    def none(self, error: NoAudioDevice) -> None:
        if not self.missing:
            log_event(log, logging.WARNING, f"no loudspeaker: {error}", code=NoAudioDevice.code)
        self.missing = True

    def lost(self, name: str, underruns: int) -> None:
        """underruns: so far; this line tells of the last one, too."""
        text = f"the loudspeaker {name!r} takes no more audio"
        if not self.missing:
            log_event(log, logging.WARNING, text, code=AudioDeviceLost.code, phase="delivery")
        self.missing, self._underruns = True, underruns

    def underruns(self, name: str, count: int, latency_ms: int, now: float) -> None:
        if count > self._underruns and (now - self._told_at > TELL_EVERY_S or not self._told_at):
            log_event(
                log,
                logging.WARNING,
                f"sound underrun: the loudspeaker {name!r} was not fed in time ({count} so far); "
                f"raise audio.latency_ms (now {latency_ms}) if this repeats",
                code="sound_underrun",
                phase="delivery",
            )
            self._told_at = now
        self._underruns = count
