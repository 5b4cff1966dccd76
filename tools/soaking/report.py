"""The figures of a run of tools/soak, what of them must not be, and how people read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from load_report import percentiles

from soaking.clients import REFUSALS, Asked
from soaking.exchanges import Exchanges
from soaking.kills import Kills
from soaking.library import Programs
from soaking.memory import Idle, Slope
from soaking.rig import Outage

RECOVERY_S = 3.0  # kill -9 to first audio
ROLLBACK_S = 5.0
IDLE_CPU_PCT = 0.5
IDLE_WAKEUPS_S = 20.0


class Times(Protocol):
    """What a rig notes of times in which nothing can be expected."""

    outages: list[Outage]
    standstills: list[Outage]


def jobs(calls: Sequence[Asked], stray: Sequence[str], rig: Times, now: float) -> dict[str, Any]:
    """lost: never ended, though client and daemon stayed. twice: ended more than once, whatever happened."""
    stayed = [call for call in calls if not call.left]
    met = [call for call in stayed if call.met(rig.outages, now)]
    disturbing = [*rig.outages, *rig.standstills]
    undisturbed = [call for call in stayed if not call.met(disturbing, now)]
    ended = [call for call in stayed if call.endings]
    first = [c.first_audio - c.sent for c in undisturbed if c.first_audio and c.outcome == "done"]
    return {
        "jobs": len(calls),
        "answered": len(ended),
        "left": len(calls) - len(stayed),
        "lost": sum(not call.endings and not call.interrupted for call in stayed),
        "interrupted": sum(call.interrupted and not call.endings for call in met),
        "late": sum(call.interrupted and call.endings == 1 for call in met),
        "twice": sum(call.endings > 1 for call in calls),
        "stray": list(stray),
        "outcomes": dict(Counter(call.outcome for call in ended)),
        "refusals": dict(Counter(c.outcome for c in ended if c.outcome in REFUSALS)),
        "unexpected": dict(Counter(c.outcome for c in ended if c.outcome not in c.expected | REFUSALS)),
        "first_audio_s": percentiles(first),
        "answer_s": percentiles([c.ended - c.sent for c in undisturbed if c.outcome == "done"]),
    }


def job_faults(report: dict[str, Any]) -> Iterator[str]:
    if report["lost"]:
        yield f"{report['lost']} jobs were lost"
    if report["twice"]:
        yield f"{report['twice']} jobs were answered twice"
    if report["stray"]:
        yield f"{len(report['stray'])} answers belong to no open job, the first: {report['stray'][0]}"
    for code, count in report["unexpected"].items():
        yield f"{count} jobs ended with {code}"
    if not report["outcomes"].get("done"):
        yield "no job was done"


def programs(seen: Programs, waiting: int) -> dict[str, Any]:
    return {
        "outcomes": dict(seen.outcomes),
        "unexpected": dict(Counter(seen.unexpected)),
        "waiting": waiting,
        "longest_until_told_s": round(seen.longest_s, 3),
    }


def program_faults(report: dict[str, Any]) -> Iterator[str]:
    if report["waiting"]:
        yield f"{report['waiting']} programs wait for an answer for ever"
    for code, count in report["unexpected"].items():
        yield f"{count} calls of the client library failed with {code} while the daemon was there"


def changes(made: Exchanges) -> dict[str, Any]:
    return {
        "counts": dict(made.counts),
        "exchanges": made.taken,
        "try_again": made.try_again,
        "stood_still": made.stood_still,
        "seconds": {kind: percentiles(times) for kind, times in made.times.items()},
        "recovery_s": percentiles(made.recovery_s),
        "pressure": dict(made.pressure),
    }


def change_faults(made: Exchanges) -> Iterator[str]:
    yield from made.faults
    if made.recovery_s and max(made.recovery_s) > RECOVERY_S:
        yield f"{max(made.recovery_s):.1f} s from a kill to the first audio, allowed are {RECOVERY_S:g}"
    if max(made.times["rollback"], default=0.0) > ROLLBACK_S:
        yield f"{max(made.times['rollback']):.1f} s for a roll-back, allowed are {ROLLBACK_S:g}"


def memory(grown: Slope | None, highest_mb: float) -> dict[str, Any]:
    found: dict[str, Any] = {"highest_pss_mb": round(highest_mb, 1), "slope_kb_per_min": None}
    if grown is not None:
        found["slope_kb_per_min"] = round(grown.kb_per_min, 1)
        found["interval_95"] = [round(grown.low, 1), round(grown.high, 1)]
        found["readings"] = grown.readings
    return found


def idleness(seen: Idle) -> dict[str, Any]:
    return {
        "seconds": round(seen.seconds, 1),
        "idle_cpu_pct": round(seen.cpu_pct, 3),
        "idle_wakeups_s": round(seen.wakeups_s, 2),
        "threads": [(name, round(pct, 3), round(wakeups, 2)) for name, pct, wakeups in seen.threads[:5]],
    }


def idle_faults(report: dict[str, Any]) -> Iterator[str]:
    if report["idle_cpu_pct"] > IDLE_CPU_PCT:
        yield f"an idle daemon takes {report['idle_cpu_pct']} % of a core, allowed are {IDLE_CPU_PCT:g}"
    if report["idle_wakeups_s"] > IDLE_WAKEUPS_S:
        often = report["idle_wakeups_s"]
        yield f"an idle daemon wakes {often} times a second, allowed are {IDLE_WAKEUPS_S:g}"


def killing(kills: Kills) -> dict[str, Any]:
    return {
        "rounds": kills.rounds,
        "interrupted": kills.interrupted,
        "commands_killed": kills.commands,
        "daemons_killed": kills.daemons,
        "left": dict(kills.states),
    }


def table(report: dict[str, Any]) -> Iterator[str]:
    """The report for people; a part is there when it was run."""
    machine = report["machine"]
    yield f"machine      {machine['cores']} cores, load average before the run {machine['busy_before']}"
    if "idle" in report:
        part = report["idle"]
        yield f"idle         {part['idle_cpu_pct']} % of a core, {part['idle_wakeups_s']} wake-ups a second"
    if "load" in report:
        yield from _load(report)
    if "kills" in report:
        part = report["kills"]
        left = ", ".join(f"{what} {count}" for what, count in sorted(part["left"].items()))
        yield f"kill -9      {part['interrupted']} interruptions in {part['rounds']} rounds,"
        yield f"             {part['commands_killed']} commands and {part['daemons_killed']} daemons killed"
        yield f"             ({left})"
    yield from (f"FAULT: {fault}" for fault in report["faults"])
    yield "ok" if report["ok"] else "failed"


def _load(report: dict[str, Any]) -> Iterator[str]:
    load, made, rss = report["load"], report["changes"], report["memory"]
    outcomes = ", ".join(f"{count} {code}" for code, count in sorted(load["outcomes"].items()))
    yield f"jobs         {load['jobs']} in {report['seconds']} s: {load['answered']} answered ({outcomes})"
    yield f"             lost {load['lost']}, twice {load['twice']}, left by their client {load['left']},"
    yield f"             under way at a restart {load['interrupted']} (answered after all: {load['late']})"
    library = ", ".join(f"{n} {code}" for code, n in sorted(report["library"]["outcomes"].items()))
    yield f"library      {library}"
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(made["counts"].items()))
    if report["standstills_s"]:
        yield f"standstills  {report['standstills_s']} s: the machine was stopped, or far too busy"
    yield f"changes      {made['exchanges']} exchanges, {report['restarts']} restarts ({counts})"
    rows = {"first audio": load["first_audio_s"], "recovery": made["recovery_s"]}
    for name, values in {**rows, **made["seconds"]}.items():
        if values is not None:
            figures = "  ".join(f"{k} {values[k]:.3f}" for k in ("p50", "p90", "p99", "max"))
            yield f"{name:<20} {figures} s ({values['count']})"
    grown = "too few readings for a slope"
    if rss["slope_kb_per_min"] is not None:
        low, high = rss["interval_95"]
        grown = f"{rss['slope_kb_per_min']} KB/min (95 %: {low} to {high}, {rss['readings']} readings)"
    yield f"memory       {grown}, highest {rss['highest_pss_mb']} MB"
