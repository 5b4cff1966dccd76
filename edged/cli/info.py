"""`edged status`, `voices`, `stats`, `ping` and `protocol`: what the daemon says about itself.

Main thread. Neighbours: `context` (the client), `render` (tables).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, get_args

import click

from edged.cli.context import Number, State, client_command, pass_state
from edged.cli.exits import tell, write_json
from edged.cli.render import duration, fields, table
from edged.errors import Starting
from edged.escape import printable

if TYPE_CHECKING:
    from edged.protocol import StatusReply


@click.command()
@click.option("--memory", is_flag=True, help="What the memory is used for, too.")
@client_command
@pass_state
def status(state: State, memory: bool) -> None:
    """Is the daemon well, what is it doing."""
    with state.client() as client:
        reply = client.status(memory)

    def text() -> None:
        fields(_facts(reply))
        if memory:
            table(("memory", "shape", "type", "MB", "kind"), _plan(reply))
        if reply.jobs:
            rows = [
                (
                    j.job,
                    j.kind,
                    j.phase if j.phase == "paused" else j.state,
                    j.voice,
                    j.priority,
                    duration(j.age_s),
                    j.client,
                )
                for j in reply.jobs
            ]
            table(("job", "kind", "state", "voice", "priority", "age", "client"), rows)

    state.show(reply, text)


def _plan(reply: StatusReply) -> list[tuple[str, ...]]:
    """The plan line by line, its sum, and what of the process is not in it."""
    rows: list[tuple[str, ...]] = []
    for row in reply.memory:
        shape = "x".join(map(str, row.shape)) if row.kind == "buffer" else ""
        times = f"{row.rows} x " if shape and row.rows > 1 else ""
        rows.append((row.name, times + shape, row.dtype if shape else "", f"{row.mb:.2f}", row.kind))
    planned = sum(row.mb for row in reply.memory)
    held = sum(row.mb for row in reply.memory if row.kind not in ("bound", "device"))
    rows.append(("total", "", "", f"{planned:.2f}", f"of {reply.budget_mb:g} MB (service.memory_mb)"))
    other = max(0.0, reply.rss_mb - held)  # below while buffers are not touched yet
    rows.append(("process (RSS)", "", "", f"{reply.rss_mb:.2f}", f"{other:.1f} MB of it are not in the plan"))
    return rows


def _loudspeaker(reply: StatusReply) -> str:
    """Its name, and what people have made of it."""
    told = ["all speech is paused"] * reply.held + ["muted"] * reply.muted
    if reply.volume != 1.0:
        told.append(f"volume {reply.volume:g}")
    return (reply.audio_device or "none") + (f" ({', '.join(told)})" if told else "")


def _budget(reply: StatusReply) -> str:
    """Nothing from a daemon that does not watch its memory, or has only just started."""
    if not (reply.budget_mb and reply.used_mb):
        return ""
    told = {"high": ", high", "full": ", new jobs are refused"}.get(reply.memory_state, "")
    share = f"{reply.used_mb / reply.budget_mb:.0%}"
    return f"{reply.used_mb:.0f} of {reply.budget_mb:g} MB ({share}; PSS, or RSS while far below){told}"


def _facts(reply: StatusReply) -> list[tuple[str, str]]:
    found = [
        ("state", reply.state),
        ("remark", reply.remark),
        ("version", reply.version),
        ("process", str(reply.pid)),
        ("running for", duration(reply.uptime_s)),
        ("memory", f"{reply.rss_mb:.1f} MB resident (RSS), of it {reply.buffers_mb:.1f} MB buffers"),
        ("memory budget", _budget(reply)),
        ("loudspeaker", _loudspeaker(reply)),
        ("sound error", reply.audio_error),
        ("endpoint", reply.endpoint),
        ("events", reply.events),
        ("tcp", reply.tcp),
        ("tcp events", reply.tcp_events),
        ("jobs", str(len(reply.jobs) or "none")),
    ]
    return [(name, value) for name, value in found if value]


@click.command()
@client_command
@pass_state
def voices(state: State) -> None:
    """Which voices can be used; * marks the default."""
    with state.client() as client:
        reply = client.voices()
        state_now = client.status().state if not reply.voices else ""
    if state_now == "starting":
        raise Starting("the daemon is still starting: no voice is loaded yet")
    rows = [
        (
            f"{v.name} *" if v.default else v.name,
            " ".join(v.languages),
            f"{v.sample_rate} Hz",
            v.family,
            v.licence,
            " ".join(v.controls),
            v.description,
        )
        for v in reply.voices
    ]
    columns = ("voice", "languages", "rate", "family", "licence", "controls", "description")
    state.show(reply, lambda: table(columns, rows))


@click.command()
@click.option("--watch", is_flag=True, help="Again and again, as a live table.")
@click.option(
    "--interval", type=Number(0.1, 3600), default=1.0, metavar="SECONDS", help="With --watch (default 1)."
)
@client_command
@pass_state
def stats(state: State, watch: bool, interval: float) -> None:
    """Counters since the daemon's start, and percentiles over its last jobs."""
    if watch:
        from edged.cli import watch as live

        live.watch(state, interval)
        return
    with state.client() as client:
        reply = client.stats()

    def text() -> None:
        told = [
            ("running for", duration(reply.uptime_s)),
            ("jobs accepted", str(reply.accepted)),
            ("done", str(reply.done)),
            ("cancelled", str(reply.cancelled)),
            ("failed", _counts(reply.failed)),
            ("refused", _counts(reply.rejected)),
            ("queued, running", f"{reply.queued}, {reply.running}"),
            ("audio made", duration(reply.audio_s)),
            ("synthesis time", duration(reply.synthesis_s)),
            ("underruns", f"{reply.underruns} on the loudspeaker, {reply.stream_underruns} in streams"),
            (
                "steps",
                f"{reply.steps}, now {reply.steps_per_s:.1f}/s of {reply.rows_per_step:.2f} utterances",
            ),
            ("processor time", f"{duration(reply.cpu_s)}, in engine calls {duration(reply.engine_cpu_s)}"),
            ("memory", f"{reply.rss_mb:.1f} MB"),
        ]
        fields(told)
        measured = [
            ("first audio, ms", reply.first_audio_ms),
            ("real-time factor", reply.rtf),
            ("text, ms", reply.text_ms),
            ("to the engine, ms", reply.to_engine_ms),
            ("from the engine, ms", reply.from_engine_ms),
            ("step, ms", reply.step_ms),
            ("wait for a slot, ms", reply.slot_wait_ms),
        ]
        rows = [
            (name, str(p.count), *(plain(value) for value in (p.p50, p.p90, p.p99, p.max)))
            for name, p in measured
        ]
        table(("last jobs", "count", "p50", "p90", "p99", "max"), rows)

    state.show(reply, text)


def _counts(codes: dict[str, int]) -> str:
    if not codes:
        return "0"
    listed = ", ".join(f"{code} {count}" for code, count in sorted(codes.items()))
    return f"{sum(codes.values())} ({listed})"


@click.command()
@client_command
@pass_state
def ping(state: State) -> None:
    """Does the daemon answer."""
    with state.client() as client:
        client.ping()  # the first one also pays for the connection
        start = perf_counter()
        pong = client.ping()
        took_ms = (perf_counter() - start) * 1e3
    state.show(pong, lambda: tell(f"edged {printable(pong.version)} answers in {took_ms:.2f} ms"))


@click.command()
@click.option("--schema", is_flag=True, help="Print JSON Schema of every request and event.")
def protocol(schema: bool) -> None:
    """What can be sent to the daemon, and what comes back."""
    import msgspec

    from edged import protocol as wire

    if schema:
        write_json(msgspec.json.format(msgspec.json.encode(wire.schema()), indent=2))
        return
    events = [(str(event.__struct_config__.tag), event) for event in get_args(wire.AnyEvent)]
    tell(f"edged protocol v{wire.VERSION}: JSON in a ZeroMQ frame, {{'op': ...}} in, {{'event': ...}} out")
    for title, kinds in (("operations", list(wire.OPERATIONS.items())), ("events", events)):
        tell()
        rows = [(name, _first_line(kind.__doc__)) for name, kind in kinds]
        table((title, "meaning"), rows)
    tell("\nEvery field: edged protocol --schema")


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().splitlines()[0]


def plain(value: float) -> str:
    """Three figures, and all of those before the point: never an exponent."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
