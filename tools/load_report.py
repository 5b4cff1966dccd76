"""What a run of tools/load saw, the figures of it, what of them must not be, and how people read them."""

from __future__ import annotations

import argparse
import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from edged.protocol import StatsReply


@dataclass(slots=True)
class Call:
    """One request, its times in monotonic seconds (0.0: did not come), and how often it was ended."""

    id: str
    sent: float
    started: float = 0.0
    first_audio: float = 0.0
    ended: float = 0.0
    endings: int = 0
    outcome: str = ""  # done, cancelled or the error's code
    retryable: bool = False
    audio_s: float = 0.0
    rtf: float = 0.0
    begun: float = 0.0  # when a listener who hears a stream as it comes would have begun
    underruns: int = 0
    margin: float = float("inf")  # audio still unheard when the next piece came; the smallest

    def hear(self, now: float, seconds: float) -> None:
        """A piece of audio arrived. A listener who ran out begins again with it, so each gap counts once."""
        if not self.first_audio:
            self.first_audio = self.begun = now
        else:
            left = self.audio_s - (now - self.begun)
            self.margin = min(self.margin, left)
            if left < 0:
                self.underruns += 1
                self.begun -= left
        self.audio_s += seconds


@dataclass(slots=True)
class Reading:
    """The daemon's own figures at a moment."""

    at: float
    rss_mb: float
    running: int


@dataclass(slots=True)
class Course:
    """What `drive` saw."""

    begin: float
    calls: list[Call] = field(default_factory=list)
    stray: list[str] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    until: float = 0.0  # the last request could be sent until then
    end: float = 0.0


def figures(course: Course, clients: int, ramp_s: float, stream: bool) -> dict[str, Any]:
    """What the run measured, without a judgement. Times are seconds at the client."""
    done = [call for call in course.calls if call.outcome == "done"]
    wall = course.end - course.begin
    steady = course.begin + ramp_s
    readings = [r for r in course.readings if steady <= r.at <= course.until] or course.readings
    middle = len(readings) // 2
    halves = [max((r.rss_mb for r in part), default=0.0) for part in (readings[:middle], readings[middle:])]
    streams = [call for call in done if stream]
    return {
        "clients": clients,
        "wall_s": round(wall, 2),
        "jobs": len(course.calls),
        "outcomes": dict(Counter(call.outcome or "lost" for call in course.calls)),
        "lost": sum(call.endings == 0 for call in course.calls),
        "twice": sum(call.endings > 1 for call in course.calls),
        "stray": course.stray,
        "latency_s": percentiles([call.ended - call.sent for call in done]),
        "wait_s": percentiles([call.started - call.sent for call in done if call.started]),
        "first_audio_s": percentiles([call.first_audio - call.sent for call in done if call.first_audio]),
        "rtf": percentiles([call.rtf for call in done]),
        "audio_s_per_s": round(sum(call.audio_s for call in done) / wall, 3),
        "streams": {
            "count": len(streams),
            "dry": sum(call.underruns > 0 for call in streams),
            "gaps": sum(call.underruns for call in streams),
            "least_left_s": round(min((c.margin for c in streams), default=0.0), 3) if streams else None,
        },
        "rss_mb": {
            "first": course.readings[0].rss_mb if course.readings else None,
            "halves": halves,
            "growth": round(halves[1] - halves[0], 2) if middle else None,
            "load": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        },
    }


def faults(report: dict[str, Any], options: argparse.Namespace) -> list[str]:
    """What must not be, in words."""
    found = []
    if report["lost"]:
        found.append(f"{report['lost']} jobs did not end within {options.drain:g} s after the last request")
    if report["twice"]:
        found.append(f"{report['twice']} jobs were ended twice")
    if report["stray"]:
        found.append(f"{len(report['stray'])} answers belong to no open job, the first: {report['stray'][0]}")
    allowed = {"done", "lost", *options.allow.split(",")} | ({"cancelled"} if options.cancel else set())
    for code, count in report["outcomes"].items():
        if code not in allowed:
            found.append(f"{count} jobs ended with {code}")
    if not report["outcomes"].get("done"):
        found.append("no job was done")
    growth = report["rss_mb"]["growth"]
    if options.max_growth_mb is not None and (growth is None or growth > options.max_growth_mb):
        found.append(f"memory grew by {growth} MB, allowed are {options.max_growth_mb}")
    if options.max_underruns is not None and report["streams"]["dry"] > options.max_underruns:
        found.append(f"{report['streams']['dry']} streams ran dry, allowed are {options.max_underruns}")
    return found


def miscounted(course: Course, before: StatsReply, after: StatsReply) -> list[str]:
    """Where the daemon's own counters tell another story."""
    outcomes = Counter(call.outcome for call in course.calls)
    # A job may end while its cancel is on the way.
    codes = after.rejected.keys() - {"unknown_job"}
    refused = sum(after.rejected[code] - before.rejected.get(code, 0) for code in codes)
    pairs = {
        "done": (after.done - before.done, outcomes["done"]),
        "cancelled": (after.cancelled - before.cancelled, outcomes["cancelled"]),
        "accepted": (after.accepted - before.accepted + refused, len(course.calls)),
        "still live": (after.queued + after.running, 0),
        "lost replies": (after.lost_replies - before.lost_replies, 0),
    }
    return [f"{what}: the daemon says {a}, the clients {b}" for what, (a, b) in pairs.items() if a != b]


def table(report: dict[str, Any]) -> Iterator[str]:
    outcomes = ", ".join(f"{count} {code}" for code, count in sorted(report["outcomes"].items()))
    yield f"{report['clients']} clients, {report['wall_s']} s: {report['jobs']} jobs ({outcomes})"
    for name in ("latency_s", "wait_s", "first_audio_s", "rtf"):
        if (values := report[name]) is not None:
            yield f"  {name:14}" + "  ".join(f"{k} {values[k]:.3f}" for k in ("p50", "p90", "p99", "max"))
    yield f"  audio made    {report['audio_s_per_s']} s per second"
    streams, rss, cores = report["streams"], report["rss_mb"], report["cores"]
    if streams["count"]:
        left = streams["least_left_s"]
        yield f"  streams       {streams['count']}, {streams['dry']} ran dry, least left {left} s"
    first, second = rss["halves"]
    yield f"  daemon        {first} to {second} MB, {cores['daemon']} cores (load: {cores['load']})"
    yield from (f"FAULT: {fault}" for fault in report["faults"])
    yield "ok" if report["ok"] else "failed"


def percentiles(values: Sequence[float]) -> dict[str, float] | None:
    """Nearest-rank percentiles; None while there is no value."""
    ordered = sorted(values)
    if not ordered:
        return None
    ranks = {f"p{q}": ordered[max(0, -(-q * len(ordered) // 100) - 1)] for q in (50, 90, 99)}
    return {"count": len(ordered), **{k: round(v, 4) for k, v in ranks.items()}, "max": round(ordered[-1], 4)}
