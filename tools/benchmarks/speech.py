"""Streams through real daemons: real-time factor, first audio, gaps, and the reference package in turn.

Neighbours: `streams.py` is the listener, `reference.py` the peer in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import material
from benchmarks.common import Daemon, Say, daemon
from benchmarks.streams import Take, first_audio_ms, real_time_factor, take, together
from benchmarks.turns import Turns

MOST = 4
REST_S = 0.05  # so that a daemon is idle again


@dataclass
class Speech:
    """Filled round by round. by_streams: number of streams -> (first audio ms, jobs' own factor) of each."""

    rtf: list[float] = field(default_factory=list)
    lengths_s: list[float] = field(default_factory=list)
    reference_rtf: list[float] = field(default_factory=list)
    speedup: list[float] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    by_streams: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    rtf_4: list[float] = field(default_factory=list)
    long_takes: list[Take] = field(default_factory=list)

    @property
    def underruns(self) -> int:
        """Pieces of the long streams that came too late."""
        return sum(slack < 0 for one in self.long_takes for slack in one.slack_s)

    @property
    def least_slack_ms(self) -> float | None:
        slack = [value for one in self.long_takes for value in one.slack_s]
        return round(min(slack) * 1e3, 1) if slack else None


def measure(bundles: Mapping[str, Path], reference: Turns | None, quick: bool, say: Say) -> dict[str, Speech]:
    found = {name: Speech() for name in bundles}
    with ExitStack() as stack:
        running = {name: stack.enter_context(daemon(path)) for name, path in bundles.items()}
        for one in running.values():
            take(one.client, "Ready.", 0)
        say("one stream" + (", in turn with the reference package" if reference else ""))
        _one_stream(running, found, reference, quick)
        say("first audio of an idle daemon")
        for name, path in bundles.items():
            text = material.of_tokens(path)
            for seed in range(5 if quick else 20):
                time.sleep(REST_S)
                found[name].first_ms.append(first_audio_ms(running[name].client, text, seed))
        say("one to four streams at once")
        _several(running, found, quick)
        say("four streams of over 20 s")
        for round_ in range(1 if quick else 2):
            for name, one in running.items():
                texts = material.long_texts(MOST, seed=20 + round_)
                takes = together(one.endpoint, [[(text, seed)] for seed, text in enumerate(texts)])
                found[name].rtf_4.append(real_time_factor(takes))
                found[name].long_takes += [only for (only,) in takes]
    return found


def _one_stream(
    running: Mapping[str, Daemon], found: Mapping[str, Speech], reference: Turns | None, quick: bool
) -> None:
    compared = (1 if quick else 2) if reference else 0  # texts: the reference takes half a minute for each
    for number, text in enumerate(material.spoken(2 if quick else 6, seed=10)):
        peer = None
        for name, one in running.items():
            spoken = take(one.client, text, number)
            rtf = spoken.wall_s / spoken.audio_s
            found[name].rtf.append(rtf)
            found[name].lengths_s.append(spoken.audio_s)
            if reference and number < compared:
                # Once for all precisions, with as many codes as the first of them drew: 93 ms a step.
                steps = round(spoken.audio_s * material.STEPS_A_SECOND + 0.5)
                peer = peer or reference(text=text, steps=steps)
                theirs = peer["seconds"] / peer["audio_s"]
                found[name].reference_rtf.append(theirs)
                found[name].speedup.append(theirs / rtf)


def _several(running: Mapping[str, Daemon], found: Mapping[str, Speech], quick: bool) -> None:
    jobs = 1 if quick else 2
    for count in range(1, MOST + 1):
        for name, one in running.items():
            texts = material.spoken(count * jobs, seed=30 + count)
            plans = [[(text, n) for n, text in enumerate(texts[at::count])] for at in range(count)]
            takes = [only for row in together(one.endpoint, plans) for only in row]
            found[name].by_streams[count] = [(t.first_ms, t.wall_s / t.audio_s) for t in takes]
