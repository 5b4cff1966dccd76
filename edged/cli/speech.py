"""`edged say` and `edged cancel`. Main thread; Ctrl-C while waiting cancels the job.

Neighbours: `context` (the client), `render` (the spinner), `edged.client`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import click

from edged.cli.context import Number, State, client_command, pass_state
from edged.cli.exits import FAILED, complain, mute_stdout, naming, tell
from edged.cli.explain import READING, check_options, explain
from edged.cli.follow import follow_stdin
from edged.cli.options import MANNERS, Speaker, manners_options, reading_options, sampling_option
from edged.cli.render import Spinner, on_terminal
from edged.errors import BadValue, FrameTooLarge, Starting

if TYPE_CHECKING:
    from edged.client import Client
    from edged.protocol import Accepted, AnyEvent, Done

STDIN_LIMIT = 1024 * 1024  # bytes; four times the largest request, so the client has the last word
SUFFIXES = {
    ".wav": "wav",
    ".flac": "flac",
    ".ogg": "ogg_opus",
    ".opus": "ogg_opus",
    ".mp3": "mp3",
    ".pcm": "pcm_s16le",
    ".raw": "pcm_s16le",
    ".f32": "pcm_f32le",
}
FORMATS = ("wav", "flac", "ogg_opus", "mp3", "pcm_s16le", "pcm_f32le")
ASK_AGAIN_S = 0.25  # a daemon that is starting


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--out", metavar="FILE|-", help="Write the audio here instead of speaking it; - is stdout.")
@click.option("--voice", default="", metavar="NAME", help="See: edged voices.")
@click.option("--speed", type=Number(0.5, 2.0), help="1.0 is the voice's own pace.")
@click.option("--pitch", type=Number(-12.0, 12.0), help="Semitones up; 0 is the voice's own pitch.")
@click.option("--volume", type=Number(0.0, 4.0), help="Linear gain.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, help="The same seed, the same audio.")
@click.option("--format", "audio_format", type=click.Choice(FORMATS), help="Default: by the suffix of FILE.")
@click.option("--sample-rate", type=click.IntRange(0, 192_000), default=0, metavar="HZ")
@manners_options
@click.option("--temperature", type=Number(0.01, 10.0), help="How freely sounds are drawn.")
@click.option("--top-p", type=Number(0.01, 1.0), help="Draw from this share of the likely sounds.")
@click.option("--top-k", type=click.IntRange(1, 1000), help="Draw from so many likely sounds.")
@click.option("--repetition-penalty", type=Number(0.1, 10.0), help="Above 1 avoids repeated sounds.")
@sampling_option
@click.option("--refine/--no-refine", default=None, help="Rewrite the text first, as it would be said.")
@click.option("--oral", type=click.IntRange(0, 9), help="Refine: how colloquial.")
@click.option("--laugh", type=click.IntRange(0, 2), help="Refine: how much laughter.")
@click.option("--break", "break_", type=click.IntRange(0, 7), help="Refine: how many pauses.")
@click.option("--show-refined", is_flag=True, default=None, help="Print what the text was rewritten to.")
@click.option("--speaker", type=Speaker(), metavar="CODE|@FILE", help="A speaker code, or a file with one.")
@reading_options
@click.option("--follow", is_flag=True, help="With the text -: speak stdin sentence by sentence as it comes.")
@click.option("--explain", "explained", is_flag=True, help="Print how it would be said; speak nothing.")
@click.option("--wait/--no-wait", default=True, help="Return when it is spoken, or at once.")
@client_command
@pass_state
def say(
    state: State,
    /,
    text: tuple[str, ...],
    out: str | None,
    audio_format: str | None,
    sample_rate: int,
    wait: bool,
    follow: bool,
    explained: bool,
    **options: Any,
) -> int:
    """Speak TEXT, or with --out make a file of it.

    The text - is read from stdin. Several words need no quotes.

    \b
    edged say Door open.
    edged say --out door.ogg "Door open."
    date | edged say -
    some-model | edged say --follow -
    edged say --out - "A long text" | aplay
    edged say --explain "It is 5 °C at 12:30."
    edged say --voice heart --run-voice zh=bao "Line 3: 出口关闭."
    """
    if explained:
        check_options(click.get_current_context())
        asked = {name: value for name, value in options.items() if name in READING and value is not None}
        return _once_started(lambda: explain(state, _words(text), **asked), state.timeout_s)
    if follow:
        _check_follow(click.get_current_context(), text)
        return _once_started(lambda: follow_stdin(state, options), state.timeout_s)
    if options["show_refined"] and not wait:
        raise click.UsageError("--show-refined waits for the text, --no-wait for nothing")
    if out is None:
        if audio_format or sample_rate:
            raise click.UsageError("--format and --sample-rate are for --out; the loudspeaker has its own")
    elif not wait:
        raise click.UsageError("--no-wait cannot be combined with --out")
    elif out == "-" and state.as_json:
        raise click.UsageError("--json and --out - would both write to stdout")
    elif out == "-" and sys.stdout is None:
        raise click.UsageError("--out - writes to stdout, which is closed")
    elif out == "-" and on_terminal(sys.stdout):
        raise click.UsageError("audio is not written to a terminal: pipe it, or give --out a file")
    elif manner := next((name for name in MANNERS if options.pop(name) is not None), ""):
        option = manner.replace("_", "-")
        raise click.UsageError(f"--{option} is for the loudspeaker and cannot be combined with --out")
    else:
        _check_place(out)
        options.update(format=audio_format or _format_of(out), sample_rate=sample_rate)
    told = 0
    words = _words(text)
    with state.client() as client, Spinner(wait and not state.as_json) as spinner:

        def see(event: AnyEvent) -> None:
            state.saw(event)
            spinner.see(event)
            nonlocal told
            skipped = getattr(event, "skipped", 0)
            if skipped > told:  # `done` knows of more than `accepted`
                told = skipped
                complain(f"warning: {skipped} characters have no sound and are left out")

        def attempt() -> int:
            if out is None:
                return _speak(state, client, words, wait=wait, on_event=see, **options)
            if out == "-":
                return _to_stdout(client, words, on_event=see, **options)
            return _to_file(state, client, words, Path(out), on_event=see, **options)

        return _once_started(attempt, state.timeout_s)


def _check_follow(context: click.Context, text: tuple[str, ...]) -> None:
    if text != ("-",):
        raise click.UsageError("--follow speaks what comes on stdin: give - as the text")
    for name in ("out", "audio_format", "sample_rate", "explained"):
        if context.params[name]:
            raise click.UsageError("--follow is for the loudspeaker only")
    if not context.params["wait"]:
        raise click.UsageError("--follow waits for the end of stdin, --no-wait for nothing")


def _once_started(attempt: Callable[[], int], timeout_s: float) -> int:
    """A boot script may speak before the voices are loaded: asks again for as long as --timeout."""
    until = monotonic() + timeout_s
    while True:
        try:
            return attempt()
        except Starting:
            if monotonic() + ASK_AGAIN_S > until:
                raise
        sleep(ASK_AGAIN_S)


def _speak(state: State, client: Client, text: str, wait: bool, **options: Any) -> int:
    result = client.speak(text, wait=wait, **options)
    state.show(result, (lambda: _tell_refined(result)) if wait else lambda: tell(result.job))
    _warn(getattr(result, "warnings", []))
    return 0


def _to_file(state: State, client: Client, text: str, path: Path, **options: Any) -> int:
    result = client.synthesize(text, **options)
    fresh = not path.exists()
    with naming(str(path)):
        try:
            path.write_bytes(result.data)
        except OSError:  # a part of the audio, or none, is of no use
            if fresh:
                path.unlink(missing_ok=True)
            raise
    state.show(result.done, lambda: _tell_refined(result.done))
    _warn(result.done.warnings)
    return 0


def _to_stdout(client: Client, text: str, **options: Any) -> int:
    out = sys.stdout.buffer
    try:
        with client.stream(text, **options) as chunks:  # leaving it early cancels the job
            for chunk in chunks:
                with naming("standard output"):
                    out.write(chunk.data)
                    out.flush()
    except BrokenPipeError:  # the reader has enough; it knows that better than a message could tell
        mute_stdout()
        return FAILED
    if chunks.done is not None:
        if chunks.done.refined:
            complain(chunks.done.refined)  # stdout is the audio's
        _warn(chunks.done.warnings)
    return 0


def _tell_refined(result: Accepted | Done) -> None:
    if refined := getattr(result, "refined", ""):
        tell(refined)


def _check_place(out: str) -> None:
    """Found out before the work, not after it."""
    if out == "-":
        return
    if not out:
        raise click.UsageError("--out needs the name of a file")
    if Path(out).is_dir():
        raise click.UsageError(f"{out} is a directory: --out needs the name of a file")
    if not Path(out).parent.is_dir():
        raise click.UsageError(f"there is no directory {Path(out).parent}")


def _format_of(out: str) -> str:
    if out == "-":
        return "wav"
    suffix = Path(out).suffix.lower()
    if suffix not in SUFFIXES:
        fault = f"no audio format has the suffix {suffix}" if suffix else f"the name {out} has no suffix"
        raise click.UsageError(f"{fault}: give --format, or one of {' '.join(SUFFIXES)}")
    return SUFFIXES[suffix]


def _words(text: tuple[str, ...]) -> str:
    return _stdin() if text == ("-",) else " ".join(text)


def _stdin() -> str:
    if sys.stdin is None:
        raise click.UsageError("the text is to be read from stdin, which is closed")
    with naming("standard input"):
        data = sys.stdin.buffer.read(STDIN_LIMIT + 1)
    if len(data) > STDIN_LIMIT:
        raise FrameTooLarge(f"the text on stdin has more than {STDIN_LIMIT // 1024} KiB")
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise BadValue(
            f"the text on stdin is not UTF-8 (byte {exc.start})", "convert it: iconv -t UTF-8"
        ) from None


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        complain(f"warning: {warning}")
