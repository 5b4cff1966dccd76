"""Anything that people and jobs do to the loudspeaker, in any order: a real ring, an engine that obeys."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.audio.fader import Fader
from edged.audio.line import Line
from edged.audio.player import Player
from edged.audio.remote import obey
from edged.audio.ring import Ring
from edged.audio.segment import PlayerSink
from edged.job import AudioChunk, Job, News, Paused, Priority, Resumed, SentenceReached
from edged.settings import Audio, Speech
from edged.speech.orders import Do, Order
from tests.sounds import make_job, usual

RATE = 8_000
SIZE = RATE // 20  # of a chunk
ORDERS: tuple[Do, ...] = ("pause", "resume", "skip", "speed", "volume", "mute", "unmute", "stop")


@dataclass
class Voice:
    """What the engine makes of one job: `utterances` of two chunks each."""

    sink: PlayerSink
    utterances: int
    at: tuple[int, int] = (0, 0)  # the next utterance, the next chunk of it
    take: int = 0
    told: list[News] = field(default_factory=list)
    over: bool = False  # the sink has the end
    ended: str = ""

    @property
    def done(self) -> bool:
        return self.at[0] >= self.utterances

    def chunk(self) -> AudioChunk:
        utterance, part = self.at
        if self.done:  # nothing was left to speak anew: the end is told
            self.over = True
            return AudioChunk(np.zeros(0, np.float32), True, utterance - 1, self.take)
        self.at = (utterance, 1) if part == 0 else (utterance + 1, 0)
        sound = np.full(SIZE, 0.01 * (1 + utterance), np.float32)
        time_s = (2 * utterance + part) * SIZE / RATE
        self.over = self.done
        return AudioChunk(sound, self.done, utterance, self.take, time_s)


class House:
    """The player's part, by hand: jobs, an engine, a device that reads."""

    def __init__(self) -> None:
        self.voices: dict[str, Voice] = {}
        self.line = Line(Speech(waiting_per_client=100), self.send_back)
        self.ring = Ring(2 * RATE, 1)
        self.fader = Fader()
        self.frames = 0
        self.now = 0.0

    def send_back(self, job: Job, utterance: int, take: int) -> None:
        voice = self.voices[job.id]
        assert utterance <= voice.at[0] + (voice.at[1] > 0), "it was spoken, or is being spoken"
        voice.at, voice.take, voice.over = (utterance, 0), take, False

    def come(self, priority: Priority, utterances: int) -> None:
        job = make_job(str(len(self.voices)))
        job.priority = priority
        sink = PlayerSink(Player(Audio(enabled=False), lambda: None), job, RATE, 0.0)
        self.voices[job.id] = Voice(sink, utterances)
        self.line.add(sink, usual(job), self.now, self.ring)
        self.settle()

    def order(self, do: Do, which: int, everything: bool) -> None:
        live = [voice for voice in self.voices.values() if not voice.ended]
        hit = live if everything else live[which % max(1, len(live)) :][:1]
        obey(Order(do, everything, 0.5), [v.sink for v in hit], self.line, self.ring, self.fader)
        self.settle()
        if do == "stop":
            for voice in hit:
                voice.ended = "stopped"
                voice.sink.clear()
                self.line.leave(voice.sink, self.ring)
                self.settle()

    def work(self, chunks: int) -> None:
        """The engine makes some chunks for whoever is wanted, and the player moves them."""
        for _ in range(chunks):
            for voice in list(self.voices.values()):
                sink = voice.sink
                wanted = sink in self.line.allowed and (sink is self.line.writer or not sink.has_audio)
                if voice.ended or voice.over or not wanted or sink.queued_s > 0.5:
                    continue
                sink.queue(voice.chunk())
                self.line.ready(sink, self.ring)
                self.settle()
            self.pump()

    def pump(self) -> None:
        while self.line.pump(self.ring, RATE):
            self.settle()

    def listen(self, frames: int) -> None:
        self.ring.read_into(np.empty((frames, 1), np.float32))
        self.frames += frames
        self.now += frames / RATE
        self.line.settle(self.ring)
        self.line.look(self.now, self.ring)
        told = self.line.told(self.ring)
        heard = self.line.heard(self.ring, self.frames)
        for sink, news in [*told, *heard]:
            sink.job.announce(heard=True)
            self.voices[sink.job.id].told.extend(news)
        for sink, _ in heard:
            voice = self.voices[sink.job.id]
            assert not voice.ended, "it ends once"
            voice.ended = "done"
        self.settle()

    def settle(self) -> None:
        dropped, paused, _ = self.line.news()
        for sink, news in paused:
            self.voices[sink.job.id].told.append(news)
        for sink, why in dropped:
            assert not self.voices[sink.job.id].ended, "it ends once"
            self.voices[sink.job.id].ended = why


STEPS = st.one_of(
    st.tuples(st.just("come"), st.sampled_from(list(Priority)), st.integers(1, 4)),
    st.tuples(st.just("order"), st.sampled_from(ORDERS), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("work"), st.integers(1, 4)),
    st.tuples(st.just("listen"), st.integers(1, 900)),
)


@settings(max_examples=250, deadline=None)
@given(st.lists(STEPS, min_size=5, max_size=40))
def test_whatever_is_done_every_job_ends_once_and_is_told_in_order(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    house = House()
    for name, *values in steps:
        getattr(house, name)(*values)
    house.order("resume", 0, True)
    for _ in range(2_000):
        if all(voice.ended for voice in house.voices.values()):
            break
        house.work(1)
        house.listen(200)
    assert {voice.ended for voice in house.voices.values()} <= {
        "done",
        "stopped",
        "busy",
        "replaced",
        "interrupted",
    }
    assert not house.line.busy
    assert (house.ring.backlog, house.ring.promised) == (0, False)
    for voice in house.voices.values():
        in_order(voice.told)


def in_order(told: list[News]) -> None:
    """Sentences come in their order; one that was interrupted may come again, and then from its beginning."""
    silent, last, again = False, -1, False
    for news in told:
        if isinstance(news, Paused):
            assert not silent
            silent = again = True
        elif isinstance(news, Resumed):
            assert silent
            silent = False
        elif isinstance(news, SentenceReached):
            assert news.utterance > last or (again and news.utterance == last), told
            last, again = news.utterance, False
            assert not silent
