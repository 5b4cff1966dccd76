"""The options that say how a text is read and when it is heard, and those whose values have a special form.

Main thread. Neighbours: `speech` and whatever else takes a text; the values are those of `edged.controls`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from edged import controls
from edged.cli.context import Number
from edged.cli.exits import naming

F = TypeVar("F", bound=Callable[..., Any])
LANGUAGES = get_args(controls.Spoken)
MANNERS = ("interrupt", "queue", "replace", "drop_if_busy", "expires_ms", "after_interrupt")
SAMPLING: dict[str, Any] = {  # how each is converted
    "temperature": Number(0.01, 10.0),
    "top_p": Number(0.01, 1.0),
    "top_k": click.IntRange(1, 1000),
    "repetition_penalty": Number(0.1, 10.0),
}


class Speaker(click.types.StringParamType):
    """A speaker code, which is too long to type: also @FILE."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).startswith("@"):
            return str(value)
        path = Path(str(value)[1:])
        with naming(str(path)):
            data = path.read_bytes()
        try:
            return data.decode().strip()
        except UnicodeDecodeError:
            self.fail(f"{path} is not UTF-8 text", param, ctx)


class Named(click.types.StringParamType):
    """LANGUAGE and what is said of it, with a mark between them."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        language, mark, rest = str(value).partition(self._mark)
        if language not in LANGUAGES or not mark or not rest:
            self.fail(f"{value} is not {' or '.join(LANGUAGES)}, {self._mark} and a value", param, ctx)
        return language, self.value(rest, param, ctx)

    def value(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return text


class Drawn(Named):
    """zh:temperature=0.2,top_p=0.7"""

    def value(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = {}
        for item in text.split(","):
            name, _, number = item.partition("=")
            if name not in SAMPLING:
                self.fail(f"{name} is none of {', '.join(SAMPLING)}", param, ctx)
            found[name] = SAMPLING[name].convert(number, param, ctx)
        return found


def _one_of(values: Any) -> click.Choice[str]:
    """values: a Literal."""
    return click.Choice(get_args(values))


def _mapping(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """By language. What a repeated option says of one language is put together."""
    found: dict[str, Any] = {}
    for language, said in value:
        found[language] = {**found.get(language, {}), **said} if isinstance(said, dict) else said
    return found or None


def reading_options(command: F) -> F:
    """Options of `ReadingOptions` of the client library, without the voice."""
    for decorate in reversed(
        (
            click.option(
                "--markup",
                type=_one_of(controls.Markup),
                default="plain",
                help="What TEXT is written in.",
            ),
            click.option(
                "--language",
                type=_one_of(controls.Spoken),
                callback=lambda context, parameter, value: value or "",
                help="Of a text that does not show its own.",
            ),
            click.option("--numbers", type=_one_of(controls.Numbers), help="Language of numbers."),
            click.option(
                "--digits",
                type=_one_of(controls.Digits),
                help="digits: numbers digit by digit.",
            ),
            click.option("--emoji", type=_one_of(controls.Emoji), help="Leave emoji out, or name them."),
            click.option("--date-order", type=_one_of(controls.DateOrder), help="Of 03/04/2026."),
            click.option(
                "--run-voice",
                "run_voices",
                type=Named("="),
                multiple=True,
                callback=_mapping,
                metavar="LANGUAGE=NAME",
                help="Who speaks a language (zh, en) that the voice does not; NAME may be spell.",
            ),
        )
    ):
        command = decorate(command)
    return command


def manners_options(command: F) -> F:
    """When it is heard, and in which order it is served."""
    for decorate in reversed(
        (
            click.option("--priority", type=_one_of(controls.PriorityName), help="Who is heard first."),
            click.option("--interrupt/--no-interrupt", default=None, help="Interrupt lower priorities."),
            click.option(
                "--queue", type=_one_of(controls.Queue), help="Behind or before those of its priority."
            ),
            click.option("--replace", type=_one_of(controls.Replace), help="own: drop your older ones."),
            click.option("--drop-if-busy/--wait-if-busy", default=None, help="Drop it if others speak."),
            click.option(
                "--expires-ms", type=click.IntRange(1, 86_400_000), help="Drop rather than start later."
            ),
            click.option(
                "--after-interrupt",
                type=_one_of(controls.AfterInterrupt),
                help="At the cut sentence, from the start, or not at all.",
            ),
            click.option(
                "--deadline-ms", type=click.IntRange(1, 86_400_000), help="Fail rather than start later."
            ),
        )
    ):
        command = decorate(command)
    return command


def sampling_option(command: F) -> F:
    """--sampling, for the option `languages`."""
    return click.option(
        "--sampling",
        "languages",
        type=Drawn(":"),
        multiple=True,
        callback=_mapping,
        metavar="LANGUAGE:NAME=VALUE,...",
        help="How sounds of one language are drawn: zh:temperature=0.2,top_p=0.7",
    )(command)
