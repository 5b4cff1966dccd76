"""Statistics as Prometheus reads them: the text format 0.0.4, from a `stats_reply`.

Pure functions. Names follow Prometheus's rules: base units (seconds, bytes), counters end in _total. What is
a percentile in `stats` becomes a summary's quantiles. Neighbour: `exporter` brings the text to its readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edged.protocol import Percentiles, StatsReply

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def text(reply: StatsReply, version: str) -> str:
    """Every figure of the reply; ends with a line feed, as the format demands."""
    return "".join(f"{line}\n" for line in _lines(reply, version))


def _lines(reply: StatsReply, version: str) -> Iterator[str]:
    yield from _one("gauge", "edged_info", "Which version runs.", 1, {"version": version})
    for name, about, value in (
        ("uptime_seconds", "Time since the start.", reply.uptime_s),
        ("resident_memory_bytes", "Memory of the process.", reply.rss_mb * 1e6),
        ("jobs_queued", "Jobs that wait for their first step.", reply.queued),
        ("jobs_running", "Jobs that are synthesized or delivered.", reply.running),
        ("steps_per_second", "Calls of a voice, over the last 10 s.", reply.steps_per_s),
        ("rows_per_step", "Utterances in a call of a voice, over the last 10 s.", reply.rows_per_step),
    ):
        yield from _one("gauge", f"edged_{name}", about, value)
    for name, about, value in (
        ("jobs_accepted", "Jobs that were taken.", reply.accepted),
        ("jobs_done", "Jobs that ended well.", reply.done),
        ("jobs_cancelled", "Jobs that were cancelled.", reply.cancelled),
        ("replies_lost", "Answers that a client did not read.", reply.lost_replies),
        ("audio_seconds", "Audio that was made.", reply.audio_s),
        ("synthesis_seconds", "Time that making it took.", reply.synthesis_s),
        ("underruns", "Gaps heard on the loudspeaker.", reply.underruns),
        ("stream_underruns", "Pieces of streams that were late.", reply.stream_underruns),
        ("steps", "Calls of a voice.", reply.steps),
        ("row_steps", "Utterances in those calls, summed.", reply.row_steps),
        ("cpu_seconds", "Processor time of the daemon.", reply.cpu_s),
        ("engine_cpu_seconds", "Processor time of its own threads inside engines.", reply.engine_cpu_s),
    ):
        yield from _one("counter", f"edged_{name}_total", about, value)
    yield from _counts("edged_jobs_failed_total", "Jobs that failed, by code.", reply.failed)
    yield from _counts("edged_requests_refused_total", "Requests that were refused, by code.", reply.rejected)
    for name, about, scale, figures in (
        ("first_audio_seconds", "From a request to its first audio.", 1e-3, reply.first_audio_ms),
        ("real_time_factor", "Synthesis time over audio time.", 1.0, reply.rtf),
        ("step_seconds", "Time of one call of a voice.", 1e-3, reply.step_ms),
        ("slot_wait_seconds", "From a prepared job to its first step.", 1e-3, reply.slot_wait_ms),
    ):
        yield from _quantiles(f"edged_{name}", about, scale, figures)


def _head(kind: str, name: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _one(
    kind: str, name: str, about: str, value: float, labels: Mapping[str, str] | None = None
) -> Iterator[str]:
    yield from _head(kind, name, about)
    yield _sample(name, value, labels or {})


def _counts(name: str, about: str, counts: Mapping[str, int]) -> Iterator[str]:
    yield from _head("counter", name, about)
    for code, count in sorted(counts.items()):
        yield _sample(name, count, {"code": code})


def _quantiles(name: str, about: str, scale: float, figures: Percentiles) -> Iterator[str]:
    """Gauges, not a summary: a summary would also need the sum and the count since start."""
    yield from _head("gauge", name, f"{about} Over the last {figures.count or 'few'} ones.")
    if figures.count:
        for quantile, value in (("0.5", figures.p50), ("0.9", figures.p90), ("0.99", figures.p99)):
            yield _sample(name, value * scale, {"quantile": quantile})
        yield _sample(name, figures.max * scale, {"quantile": "1"})


def _sample(name: str, value: float, labels: Mapping[str, str]) -> str:
    """A backslash, a quote or a line feed in a label would end it."""
    escaped = (
        f'{key}="{label}"'
        for key, label in (
            (k, v.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for k, v in labels.items()
        )
    )
    inside = ",".join(escaped)
    return f"{name}{{{inside}}} {value!r}" if inside else f"{name} {value!r}"
