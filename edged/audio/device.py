"""Which loudspeaker: finding it, its ring, and opening and closing its stream.

Everything here runs on the thread `edged-player`; others only read `error`, `name` and `underruns`.
Neighbours: `player` owns the one `Loudspeaker`, `output` is the stream.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Any

from edged.audio.output import Output, Speaker, portaudio, reason
from edged.audio.ring import Ring
from edged.errors import NoAudioDevice
from edged.settings import Audio

log = logging.getLogger("edged.audio")

RING_S = 2.0  # how long the engine may pause between two jobs, or stumble, without being heard


class Loudspeaker:
    """The device that the settings name, present or not, its ring and its stream while one is open."""

    def __init__(self, settings: Audio, voice_rate: int) -> None:
        self.error: NoAudioDevice | None = None
        self.name = ""
        self.output: Output | None = None
        self.ring = Ring(1, 1)
        self.checked_at = 0.0
        self._settings = settings
        self._voice_rate = voice_rate
        self._speaker: Speaker | None = None
        self._stale = False  # PortAudio's list of devices may be out of date
        self._underruns = 0  # of rings and streams that are gone
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
    def cold(self) -> bool:
        """The device has not had its lead-in yet: silence it may swallow while it wakes up.

        The callback plays that silence by itself while the ring is empty, from the opening on.
        """
        output = self.output
        return output is None or output.frames * 1000 < self._settings.lead_in_ms * output.speaker.rate

    @property
    def underruns(self) -> int:
        output = self.output
        return self._underruns + self.ring.underruns + (output.xruns if output else 0)

    def probe(self) -> None:
        """Looks for the device and makes its ring, without opening a stream. `error` says how it went."""
        error: NoAudioDevice | None = None
        speaker: Speaker | None = None
        try:
            if Output.hung():
                raise NoAudioDevice("the sound server does not answer", "restart the sound server")
            if self._stale:
                _refresh()
            speaker = _find(self._settings, self._voice_rate)
        except NoAudioDevice as exc:
            error = exc
        except Exception as exc:  # whatever a driver does, jobs that need no loudspeaker go on
            log.exception("looking for the audio device failed")
            error = NoAudioDevice(f"looking for the audio device failed: {type(exc).__name__}")
        if speaker is not None:
            frames = int(RING_S * speaker.rate)
            if (self.ring.frames, self.ring.channels) != (frames, speaker.channels):
                self._underruns += self.ring.underruns
                self.ring = Ring(frames, speaker.channels)
            if speaker.name != self.name:
                log.info("loudspeaker %r, %d Hz, %d channels", speaker.name, speaker.rate, speaker.channels)
        elif str(error) != str(self.error or ""):
            log.warning("no loudspeaker: %s", error)
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
            try:
                self.output = Output(self._speaker, self.ring, self._settings.latency_ms / 1000)
            except NoAudioDevice as exc:  # perhaps only its number changed: look again, once
                self._speaker, self._stale = None, True
                self.error, self.checked_at = exc, monotonic()
            else:
                log.debug("audio stream opened, latency %.0f ms", self.latency_s * 1000)
                return True
        log.warning("no loudspeaker: %s", self.error)
        return False

    def close(self, lost: bool = False) -> None:
        """Closes the stream, at once. After a loss the next opening looks for the device anew."""
        output, self.output = self.output, None
        if output is not None:
            output.close()
            self._underruns += output.xruns
            log.debug("audio stream closed")
        if lost:
            self._speaker, self._stale = None, True


def _refresh() -> None:
    """Makes PortAudio list the devices anew (it does so only when it starts). No stream may be open."""
    sd = portaudio()
    try:
        sd._terminate()
        sd._initialize()
    except sd.PortAudioError as exc:
        raise NoAudioDevice(f"PortAudio cannot start: {reason(exc)}") from None


def _find(settings: Audio, voice_rate: int) -> Speaker:
    """The device that `settings.device` means, with a rate and channels that it takes.

    48 kHz comes first although PulseAudio and ALSA's plugins take any rate: they would resample with
    less care than soxr does, and one rate for all voices needs no reopening between jobs.
    """
    sd = portaudio()
    index, info = _choose(sd, settings.device)
    most = int(info["max_output_channels"])
    rates = dict.fromkeys((48_000, voice_rate, 44_100, int(info["default_samplerate"])))
    refusal = ""
    for channels in dict.fromkeys((min(2, most), 1, most)):
        for rate in rates:
            try:
                sd.check_output_settings(device=index, channels=channels, dtype="float32", samplerate=rate)
            except sd.PortAudioError as exc:
                refusal = reason(exc)
            else:
                return Speaker(index, str(info["name"]), rate, channels)
    raise NoAudioDevice(f"the audio device {info['name']!r} cannot be opened: {refusal}")


def _choose(sd: Any, wanted: str) -> tuple[int, Any]:
    """Index and description: an exact name first, then the first that contains it in any case."""
    outputs = [(i, info) for i, info in enumerate(sd.query_devices()) if info["max_output_channels"] > 0]
    if not outputs:
        raise NoAudioDevice("there is no audio output device")
    if wanted:
        names = [(pair, str(pair[1]["name"])) for pair in outputs]
        for pair, name in names:
            if name == wanted:
                return pair
        for pair, name in names:
            if wanted.casefold() in name.casefold():
                return pair
        known = ", ".join(repr(name) for _, name in names)
        raise NoAudioDevice(f"there is no audio device {wanted!r}", f"set audio.device to one of: {known}")
    default = sd.default.device[1]
    return next((pair for pair in outputs if pair[0] == default), outputs[0])
