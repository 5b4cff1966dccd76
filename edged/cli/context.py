"""What the commands share: the global options, the connection to the daemon, the output of results.

Main thread. Click is imported here, msgspec and pyzmq only when a command talks to a daemon. Neighbours:
every command module of `edged.cli`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from edged.cli.exits import write_json

if TYPE_CHECKING:
    from edged.client import Client
    from edged.protocol import Event

F = TypeVar("F", bound=Callable[..., Any])
CLIENT_NAME = "edged"  # one name for all invocations, so that `cancel --mine` reaches a user's other ones


@dataclass
class State:
    """The global options of one invocation. job: of the last event, for the report of a failure."""

    endpoint: str = ""
    timeout_s: float = 10.0
    server_key: str = ""
    secret_key: str = ""
    as_json: bool = False
    job: str = ""

    def client(self) -> Client:
        from edged.client import Client, Curve

        if self.secret_key and not self.server_key:
            raise click.UsageError("--secret-key needs --server-key")
        curve = Curve(self.server_key, self.secret_key) if self.server_key else None
        return Client(self.endpoint or None, self.timeout_s, CLIENT_NAME, curve=curve)

    def saw(self, event: Event) -> None:
        self.job = event.job

    def show(self, event: Event, text: Callable[[], None] | None = None) -> None:
        """A result: JSON when asked for, otherwise what `text` prints."""
        if self.as_json:
            from edged import protocol

            write_json(protocol.encode(event))
        elif text is not None:
            text()


pass_state = click.make_pass_decorator(State)


def _store(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """An option that lands in the State, given before or after the command's name."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value not in (None, False, ""):
            setattr(context.ensure_object(State), name, value)

    return keep


def endpoint_options(command: F) -> F:
    """--endpoint and its companions: on the `edged` group and on every client command."""
    for decorate in (
        click.option(
            "--secret-key",
            metavar="FILE",
            envvar="EDGED_SECRET_KEY",
            expose_value=False,
            callback=_store("secret_key"),
            help="This client's secret key, for tcp://.",
        ),
        click.option(
            "--server-key",
            metavar="FILE",
            envvar="EDGED_SERVER_KEY",
            expose_value=False,
            callback=_store("server_key"),
            help="The daemon's public key, for tcp://.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(0.1, 3600),
            metavar="SECONDS",
            expose_value=False,
            callback=_store("timeout_s"),
            help="How long the daemon may be silent (default 10).",
        ),
        click.option(
            "--endpoint",
            metavar="URL",
            expose_value=False,
            callback=_store("endpoint"),
            help="The daemon's socket (default: $EDGED_ENDPOINT, or the first one found).",
        ),
    ):
        command = decorate(command)
    return command


def json_option(command: F) -> F:
    return click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_store("as_json"),
        help="Print the answer as JSON.",
    )(command)


def client_command(command: F) -> F:
    """The options of a command that talks to a daemon."""
    return endpoint_options(json_option(command))
