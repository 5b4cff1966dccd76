"""`edged voice enroll | random | list`: the named voices inside a ChatTTS bundle. Main thread.

The bundle changes in one step; a running daemon keeps the old one until it is restarted. Neighbours:
`edged.compiler.chattts`, imported when a command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from edged.cli.bundles import locate
from edged.cli.exits import complain
from edged.cli.render import table

if TYPE_CHECKING:
    from edged.bundle import Bundle
    from edged.voices.chattts import data


@click.group()
def voice() -> None:
    """Make and list the named voices of a ChatTTS bundle."""


def _load(place: str) -> Bundle:
    from edged.bundle import Bundle
    from edged.compiler.chattts import people
    from edged.errors import BundleError, BundleMissing

    path = locate(place)
    if not path.is_dir():
        raise BundleMissing(f"{path}: no bundle there")
    with people.alone(path, reading=True):  # a change in the middle of the check would look like damage
        bundle = Bundle.load(path)
    if bundle.manifest.family != "chattts":
        raise BundleError(f"{bundle.path}: only bundles of family chattts have voices to choose from", "")
    return bundle


@voice.command()
@click.option("--bundle", "place", metavar="PATH|NAME", required=True, help="A bundle with an encoder.")
@click.option("--audio", type=click.Path(dir_okay=False, path_type=Path), required=True, help="A recording.")
@click.option("--text", required=True, help="What is said in the recording, word by word.")
@click.option("--name", default="", help="Store the voice in the bundle under this name.")
@click.option("--description", default="", help="What clients are told about the voice.")
def enroll(place: str, audio: Path, text: str, name: str, description: str) -> None:
    """Make a voice from a recording: some 3 to 8 seconds of clear speech of one person.

    Prints its prompt code, or stores it with --name. Use recordings of people who agree to it.
    """
    from edged.compiler.chattts import enroll as enrolling
    from edged.compiler.chattts import people

    bundle = _load(place)
    code = enrolling.prompt_code(bundle, audio, text)
    if name:
        _store(bundle, people.person(name, prompt=code, text=text, description=description))
    else:
        print(code)


@voice.command("random")
@click.option("--bundle", "place", metavar="PATH|NAME", required=True, help="A bundle built with --spk-stat.")
@click.option("--seed", type=click.IntRange(0), required=True, help="The same seed gives the same voice.")
@click.option("--name", default="", help="Store the voice in the bundle under this name.")
def random_voice(place: str, seed: int, name: str) -> None:
    """Draw a voice at random; prints its speaker code, or stores it with --name."""
    from edged.compiler.chattts import people

    bundle = _load(place)
    code = people.random_code(bundle, seed)
    if name:
        _store(bundle, people.person(name, code=code, description=f"ChatTTS, random speaker {seed}"))
    else:
        print(code)


@voice.command("list")
@click.option("--bundle", "place", metavar="PATH|NAME", required=True, help="The bundle.")
def list_voices(place: str) -> None:
    """List the voices of a bundle."""
    from edged.voices.chattts import data

    bundle = _load(place)
    told = {info.name: info.description for info in bundle.manifest.voices}
    known = data.read(bundle.data_path("speakers"), data.Speakers)
    rows = [(person.name, _kind(person), told.get(person.name, "")) for person in known.voices]
    table(("voice", "made of", "description"), rows)


def _kind(person: data.Speaker) -> str:
    kinds = [kind for kind, code in (("speaker code", person.code), ("recording", person.prompt)) if code]
    return " and ".join(kinds) or "nothing: the model's own choice"


def _store(bundle: Bundle, person: data.Speaker) -> None:
    from edged.compiler.chattts import people

    people.add(bundle, person)
    complain(f"voice {person.name!r} is in {bundle.path}", "restart the daemon to use it")
