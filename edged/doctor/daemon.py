"""Checks of the running daemon: it answers, is of this version, has memory left, and speaks. Main thread.

Neighbours: `findings` runs them; the client library asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import numpy as np

from edged import __version__
from edged.doctor.findings import Case, Finding
from edged.errors import EdgedError, OverBudget, ReplyTimeout, RequestError, ServiceError
from edged.protocol import StatusReply

TRIALS = ("One, two, three.", "一，二，三。")  # for voices of one language or the other
WARN_SHARE = 0.8  # of service.memory_mb
PATIENCE_MS = 10_000  # behind the jobs of others
LIMIT_S = 30.0  # for all of it: an engine that is stuck is silent for ever, while its daemon answers
SLOW = 1.0  # real-time factor from which a listener hears gaps


def answers(case: Case) -> Iterator[Finding]:
    status = case.status
    if isinstance(status, EdgedError):
        yield Finding.of("daemon", status)
        return
    told = f"edged {status.version}, process {status.pid}, {status.state}, {len(status.jobs)} jobs"
    if status.state != "ready":
        yield Finding("daemon", "warning", told, "wait until it is ready: edged status")
    elif status.version != __version__:
        text = f"{told}; this command is of version {__version__}"
        yield Finding("daemon", "warning", text, "restart the daemon, or use the command of its installation")
    elif status.remark:
        remedy = "see what keeps the configured bundle from running, in the findings above"
        yield Finding("daemon", "warning", f"{told}; {status.remark}", remedy)
    else:
        yield Finding("daemon", "ok", told)
    if status.held:
        yield Finding(
            "daemon's speech", "warning", "paused for all jobs, also those that come", "edged resume"
        )
    yield _memory(status)


def _memory(status: StatusReply) -> Finding:
    used_mb = status.used_mb or status.rss_mb  # the watchdog has not looked yet, or there is none
    told = f"{used_mb:.0f} of {status.budget_mb:g} MB (service.memory_mb)"
    remedy = "see what it is used for: edged status --memory"
    if status.memory_state == "full":
        return Finding("daemon's memory", "failed", f"{told}: new jobs are refused", remedy, OverBudget.code)
    if status.memory_state == "high" or used_mb > WARN_SHARE * status.budget_mb > 0:
        return Finding("daemon's memory", "warning", f"{told}: over {WARN_SHARE:.0%} of it", remedy)
    return Finding("daemon's memory", "ok", told)


def speech(case: Case) -> Iterator[Finding]:
    """A short text becomes audio, within `LIMIT_S`; it is not played."""
    if isinstance(case.status, EdgedError):
        yield Finding("speech", "skipped", "no daemon answers")
        return
    until = monotonic() + LIMIT_S
    with case.client() as client:
        for text in TRIALS:
            left_s = until - monotonic()
            try:
                spoken = client.synthesize(
                    text, format="pcm_s16le", deadline_ms=PATIENCE_MS, within_s=max(left_s, 0.0)
                )
            except ReplyTimeout:  # it may answer pings all the while
                remedy = "see what holds it: journalctl -u edged -x -e; then: systemctl restart edged"
                told = f"nothing was spoken within {LIMIT_S:g} s"
                yield Finding("speech", "failed", told, remedy, ReplyTimeout.code)
                return
            except ServiceError as error:  # busy, starting: it may speak in a moment
                yield Finding.of("speech", error, "warning")
                return
            except RequestError as error:
                if text == TRIALS[-1] or error.code not in ("unsupported_text", "unspeakable_text"):
                    raise
                continue
            break
    told = f"{spoken.duration_s:.2f} s of audio in {spoken.done.synthesis_s:.2f} s of computing"
    if not np.frombuffer(spoken.data, np.int16).any():
        remedy = "check the bundle: edged bundle verify NAME"
        yield Finding("speech", "failed", f"{told}, all of it silence", remedy, "broken_sound")
    elif spoken.done.rtf > SLOW:
        remedy = "stop other programs, raise engine.threads, or use a smaller voice"
        yield Finding("speech", "warning", f"{told}: slower than real time", remedy)
    else:
        yield Finding("speech", "ok", told)
