"""How long the player may sleep. Called on `edged-player` with its lock held.

Neighbours: it looks at `device` and `line`.
"""

from __future__ import annotations

from edged.audio.device import Loudspeaker
from edged.audio.line import Line

LOOK_S = 0.04  # how often the player looks at a playing stream, at least; the stall timer counts on it
IDLE_LOOK_S = 0.25  # the same when the stream is open and nothing plays
SOON_S = 0.01  # pause while the device warms up or a job is cut out: this is latency that is heard


def pause_s(speaker: Loudspeaker, line: Line, stopping: bool) -> float | None:
    """How long nothing will have to be done, None until the next poke."""
    output, writer = speaker.output, line.writer
    if output is None:
        return None
    if stopping:
        return SOON_S
    wait = LOOK_S if line.busy else IDLE_LOOK_S
    if writer is not None and writer.has_audio:
        wait = SOON_S if speaker.cold or speaker.ring.cutting else LOOK_S
    head = line.playing[0] if line.playing else None
    if head is not None and head.left_at:
        wait = min(wait, (head.left_at + output.latency_frames - output.frames) / output.speaker.rate)
    elif head is not None and head.end is not None:
        wait = min(wait, (head.end - speaker.ring.read) / output.speaker.rate)
    news = line.next_news(speaker.ring)
    if news is not None:
        wait = min(wait, news / output.speaker.rate)
    return max(wait, 0.005)
