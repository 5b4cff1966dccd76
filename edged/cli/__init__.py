"""The `edged` command: `main` runs one command and ends the process with one of the codes of `exits`.

Main thread. Importing it costs click and nothing else of weight: each command imports what it needs when
it runs, so `edged say` never waits for rich or ONNX Runtime. An `EdgedError` becomes two lines on stderr
(or JSON on stdout with --json), never a traceback.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from io import StringIO, TextIOWrapper
from typing import NoReturn

import click

from edged import __version__
from edged.cli import (
    audio,
    bundles,
    control,
    daemon,
    doctor,
    exits,
    history,
    info,
    lexicon,
    speech,
    top,
    voice,
)
from edged.cli.context import State, endpoint_options
from edged.errors import EdgedError
from edged.escape import printable_lines

COMMANDS = (
    daemon.serve,
    speech.say,
    control.cancel,
    control.pause,
    control.resume,
    control.skip,
    control.volume,
    control.mute,
    control.unmute,
    control.speed,
    history.history,
    history.repeat,
    info.status,
    info.voices,
    info.stats,
    top.top,
    doctor.doctor,
    info.ping,
    daemon.reload,
    bundles.bundle,
    voice.voice,
    audio.audio,
    lexicon.lexicon,
    daemon.check_config,
    daemon.show_config,
    daemon.keys,
    info.protocol,
)


class _Ordered(click.Group):
    """Lists the commands by use, not by alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_Ordered,
    invoke_without_command=True,
    epilog=exits.HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="edged")
@endpoint_options
@click.pass_context
def cli(context: click.Context) -> None:
    """edged: an offline text-to-speech daemon, and its command line."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in COMMANDS:
    cli.add_command(_command)


def main(args: list[str] | None = None) -> NoReturn:
    exits.hold_descriptors()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path may hold any bytes
    try:
        code = _run(args)
        exits.flush_stdout()
    except BrokenPipeError:  # the reader has enough
        exits.mute_stdout()
        code = exits.FAILED
    except OSError as error:
        with suppress(OSError):
            exits.flush_stdout()
        exits.mute_stdout()  # what it did not take is lost
        exits.complain(f"error [system]: {error.strerror or error}", error.filename and str(error.filename))
        code = exits.FAILED
    sys.exit(code)


def _run(args: list[str] | None) -> int:
    """Runs one command; what cannot be read or written is left to the caller."""
    state = State()
    try:
        code = cli.main(args, prog_name="edged", standalone_mode=False, obj=state)
    except click.Abort:
        return exits.INTERRUPTED
    except click.ClickException as error:
        with suppress(OSError):  # stderr is full or gone; the exit code still tells
            if sys.stderr is not None:  # click would take stdout instead
                told = StringIO()
                error.show(told)  # it repeats arguments
                print(printable_lines(told.getvalue()), end="", file=sys.stderr)
        return exits.USAGE
    except EdgedError as error:
        return exits.report(error, state.as_json, state.job)
    return code if isinstance(code, int) else exits.OK
