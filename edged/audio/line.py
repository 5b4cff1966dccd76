"""The jobs in line for the loudspeaker: which one writes, which wait, which are heard or paused.

No thread of its own: all of it is guarded by the lock of its one owner, `player`, but for `front`, which
the engine thread reads. Neighbours: `segment` is a job's audio, `recall` brings it back from the ring.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass

from edged.audio.recall import Recall
from edged.audio.ring import Ring
from edged.audio.segment import How, PlayerSink
from edged.job import Job

# Has a job spoken anew from an utterance on, in chunks of that take (`edged.engines.Engines.send_back`).
SendBack = Callable[[Job, int, int], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """A job fell silent, or is heard again, this far into its audio."""

    job: Job
    paused: bool
    position_s: float


class Line:
    """writer: has claimed the loudspeaker; None only when nobody waits for it, or nobody may have it.
    playing: with audio in the ring, in its order; the writer is among them once its first sample is there.
    front: whose audio is needed next. held: whoever comes waits. turns: yet to be told.
    """

    def __init__(self, send_back: SendBack) -> None:
        self.writer: PlayerSink | None = None
        self.front: PlayerSink | None = None
        self.playing: list[PlayerSink] = []
        self.turns: list[Turn] = []
        self.held = False
        self._waiting: list[PlayerSink] = []  # in the order of their arrival
        self._paused: list[PlayerSink] = []
        self._recall: Recall | None = None
        self._arrivals = 0
        self._send_back = send_back

    @property
    def busy(self) -> bool:
        return bool(self.playing or self.writer or self._recall)

    @property
    def current(self) -> list[PlayerSink]:
        """Those that a device which goes away takes with it."""
        back = [part.sink for part in self._recall.parts] if self._recall else []
        return list(dict.fromkeys([*self.playing, *back, *([self.writer] if self.writer else [])]))

    @property
    def everybody(self) -> list[PlayerSink]:
        return [*self.current, *self._waiting, *self._paused]

    @property
    def unsettled(self) -> bool:
        """Something is to be told as soon as it is heard."""
        return bool(
            self._recall or any(s.sounding for s in self.playing) or any(s.silent for s in self._paused)
        )

    def join(self, sink: PlayerSink) -> None:
        """A sink has audio: it writes, or waits for its turn."""
        if not sink.arrival:
            self._arrivals += 1
            sink.arrival = self._arrivals
        if sink not in self.everybody:
            self._place(sink)

    def leave(self, sink: PlayerSink, ring: Ring) -> bool:
        """Takes a job's audio out, wherever it is; True when a part of it was in the ring."""
        inside = sink in self.playing
        if inside and sink.start is not None:
            if sink.end is None:
                ring.promised = False
            ring.cut(sink.start, ring.written if sink.end is None else sink.end)
        self._take_out(sink)
        return inside

    def pump(self, ring: Ring, rate: int) -> bool:
        """Moves a piece of the writer's audio into the ring; False when nothing moved."""
        sink = self.writer
        if sink is None:
            return False
        moved = sink.pump(ring, rate)
        if sink.start is not None and sink not in self.playing:
            self.playing.append(sink)
        if sink.end is not None:
            self.writer = None
            self._choose()
        return moved

    def heard(self, read: int, frames: int, latency_frames: int) -> list[PlayerSink]:
        """Takes out the jobs whose last sample left the device's buffer, too; notes the turns of others.

        read: the ring's position, frames: what the device asked for so far. Frames, not seconds: a device
        that has stopped has not played its buffer.
        """
        ended: list[PlayerSink] = []
        for sink in self.playing:
            if sink.sounding and sink.start is not None and read - latency_frames >= sink.start:
                sink.sounding = False
                self.turns.append(Turn(sink.job, False, sink.heard_s(sink.start)))
            sink.release(read - latency_frames)
        for sink in self.playing:
            if sink.end is None or read < sink.end:
                break
            sink.left_at = sink.left_at or frames
            if frames >= sink.left_at + latency_frames:
                ended.append(sink)
        self.playing = self.playing[len(ended) :]
        for sink in self._paused:
            if sink.silent and frames >= sink.left_at + latency_frames:
                self._tell_paused(sink)
        return ended

    def rewound(self) -> None:
        """What had left the ring may be in it again."""
        for sink in self.playing:
            sink.left_at = 0

    def late(self, now: float, ahead_s: float, latency_s: float) -> list[tuple[PlayerSink, str]]:
        """Jobs that would begin to be heard after their deadline, and how to say so.

        ahead_s: until a sample that is written now is heard. It holds for the writer only: those that
        wait may get their turn sooner, when the audio before them is cancelled.
        """
        waits = [(sink, latency_s) for sink in self._waiting if not sink.begun]
        if self.writer is not None and self.writer.start is None and not self.writer.begun:
            waits.insert(0, (self.writer, ahead_s))
        late = []
        for sink, wait_s in waits:
            excess_s = now + wait_s - sink.job.deadline if sink.job.deadline is not None else 0.0
            if excess_s > 0:
                text = f"its first word would be heard {max(1, round(excess_s * 1e3))} ms after the deadline"
                late.append((sink, text))
        return late

    # -- pausing --------------------------------------------------------------------------------

    def hold(self, held: bool) -> None:
        self.held = held
        self._choose()

    def pause(self, sink: PlayerSink, ring: Ring) -> bool:
        """Silences a job until it is resumed; False when it is paused already."""
        if sink.paused or sink.job.ended:
            return False
        sink.paused = sink.silent = True
        sink.sounding = False
        if sink in self.playing:
            self._call_back(sink, ring)
        elif not self._on_its_way(sink):
            if sink in self.everybody:
                self._take_out(sink)
                self._paused.append(sink)
                self._choose()
            self._tell_paused(sink)
        return True

    def resume(self, sink: PlayerSink, how: How) -> bool:
        """It is heard again, when it is its turn; False when it was not paused."""
        if not sink.paused:
            return False
        sink.paused, sink.sounding, sink.how = False, True, how
        if not self._on_its_way(sink):
            if sink.silent:
                self._tell_paused(sink)
            inside = sink in self._paused
            self._take_out(sink)
            self._go_on(sink, inside)
        return True

    def skip(self, sink: PlayerSink, ring: Ring) -> bool:
        """Ends the utterance that is heard; False when none is."""
        if sink in self.playing and sink.heard(ring.read):
            sink.skipping = True
            self._call_back(sink, ring)
            return True
        if self._on_its_way(sink):
            sink.skipping = True
            return True
        if not (sink.paused and sink.begun):
            return False
        self._sent(sink, sink.skip())
        return True

    def settle(self, reading: bool, frames: int, margin: int) -> None:
        """Gives the sinks what comes back from the ring, once the reader has left it.

        reading, frames: a device is open, and asked for so many frames so far. margin: as in `Recall.left`.
        """
        for sink in self._paused:
            if sink.silent and not reading:
                self._tell_paused(sink)
        recall = self._recall
        left = recall.left(reading, margin) if recall is not None else None
        if recall is None or left is None:
            return
        self._recall = None
        for part in recall.parts:
            sink = part.sink
            if sink.dropped:
                continue
            heard = sink.start is not None and left > sink.start
            sink.take_back(part.at, part.audio, left)
            if sink.skipping:
                sink.skipping = False
                self._sent(sink, sink.skip())
            sink.left_at = frames if heard else frames - margin
            if sink.paused:
                self._paused.append(sink)
                continue
            if sink.silent:
                self._tell_paused(sink)
            self._go_on(sink, True)
        self._choose()

    def _on_its_way(self, sink: PlayerSink) -> bool:
        return self._recall is not None and any(part.sink is sink for part in self._recall.parts)

    def _call_back(self, sink: PlayerSink, ring: Ring) -> None:
        """All audio in the ring from that of a job on goes back to its sinks."""
        at = self.playing.index(sink)
        sinks, self.playing = self.playing[at:], self.playing[:at]
        if self._recall is None:
            self._recall = Recall(ring)
        self._recall.add(sinks)
        for one in sinks:
            one.left_at = 0
        writer, self.writer = self.writer, None
        if writer is not None and writer not in sinks:
            self._place(writer)
        self._choose()

    def _go_on(self, sink: PlayerSink, joined: bool) -> None:
        """joined: it has audio, or its end."""
        how, sink.how = sink.how, "exact"
        again = sink.go_on(how)
        self._sent(sink, again)
        if joined and again is None:
            self._place(sink)

    def _sent(self, sink: PlayerSink, utterance: int | None) -> None:
        if utterance is not None:
            self._send_back(sink.job, utterance, sink.take)

    def _tell_paused(self, sink: PlayerSink) -> None:
        sink.left_at, sink.silent = 0, False
        self.turns.append(Turn(sink.job, True, sink.heard_s(0)))

    # -- turns ----------------------------------------------------------------------------------

    def _place(self, sink: PlayerSink) -> None:
        if sink.paused:
            self._paused.append(sink)
        else:
            insort(self._waiting, sink, key=lambda one: one.arrival)
        self._choose()

    def _take_out(self, sink: PlayerSink) -> None:
        for sinks in (self.playing, self._waiting, self._paused):
            if sink in sinks:
                sinks.remove(sink)
        if self.writer is sink:
            self.writer = None
        self._choose()

    def _choose(self) -> None:
        """The next one writes, if it may."""
        if self.writer is None and self._waiting and not self.held and self._recall is None:
            self.writer = self._waiting.pop(0)
        self.front = self.writer or (self._waiting[0] if self._waiting else None)
