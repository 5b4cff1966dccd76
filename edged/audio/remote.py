"""What people do to speech while it is heard, or waits for that: the loudspeaker's remote control.

Any thread, with the player's lock held. Neighbours: `player` is asked, `line` and `segment` do it.
"""

from __future__ import annotations

from edged.audio.fader import Fader
from edged.audio.line import Line
from edged.audio.ring import Ring
from edged.audio.segment import PlayerSink
from edged.speech.orders import Order


def obey(order: Order, sinks: list[PlayerSink], line: Line, ring: Ring, fader: Fader) -> list[PlayerSink]:
    """Carries it out; those of the sinks that it changed something for. Raises `BadValue` for a volume out of
    range. sinks: of the jobs that are meant."""
    if order.everything and order.do in ("volume", "mute", "unmute"):
        _set_loudspeaker(order, fader)
        return []
    if order.do == "stop":  # none of them is to begin when another one ends
        line.stop(sinks, ring)
        return sinks
    if order.do == "skip":
        return [sink for sink in sinks if line.skip(sink, ring)]
    if order.do in ("pause", "resume"):
        return _hold(order, sinks, line, ring)
    for sink in sinks:
        if order.do == "speed":
            sink.job.pace = order.value / sink.job.params.speed
            line.respeak(sink, ring)
        elif order.do == "volume":
            sink.set_level(volume=order.value)
        else:
            sink.set_level(muted=order.do == "mute")
    line.publish(ring)
    return sinks


def _set_loudspeaker(order: Order, fader: Fader) -> None:
    if order.do == "volume":
        fader.set_volume(order.value)
    else:
        fader.muted = order.do == "mute"


def _hold(order: Order, sinks: list[PlayerSink], line: Line, ring: Ring) -> list[PlayerSink]:
    pause = order.do == "pause"
    if order.everything:
        line.held = pause
    hit = [sink for sink in sinks if sink.job.paused != pause]
    for sink in hit:
        sink.job.paused = pause
    (line.hold if pause else line.go_on)(hit, ring)
    return hit
