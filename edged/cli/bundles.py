"""`edged bundle build | verify | list`: the voices on this machine. Main thread.

Neighbours: `edged.bundle`, `edged.compiler` and `edged.config`, imported when their command runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edged.cli.exits import FAILED, OK, complain
from edged.cli.render import fields, progress_bar, table

if TYPE_CHECKING:
    from edged.bundle import Manifest


@click.group()
def bundle() -> None:
    """Build, check and list voice bundles."""


@bundle.command()
@click.argument("family")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The bundle's own directory.")
@click.option("--set", "options", multiple=True, metavar="NAME=VALUE", help="An option of the family.")
def build(family: str, out: Path | None, options: tuple[str, ...]) -> None:
    """Build a bundle of FAMILY where the daemon finds it, or in --out."""
    from edged import compiler
    from edged.paths import writable_bundle_directory

    given = dict(_option(text) for text in options)
    target = out or writable_bundle_directory(_configured()) / str(given.get("name", family))
    with progress_bar() as progress, _only_known(family):
        path = compiler.build(family, target, progress, **given)
    print(path)


def _option(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value read as YAML so that numbers and true/false are what they look like."""
    import yaml

    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise click.UsageError(f"--set {text}: expected NAME=VALUE")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError:
        return name, value


class _only_known:
    """Turns the call's complaint about an unknown option into one about --set."""

    def __init__(self, family: str) -> None:
        self._family = family

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, TypeError) and "unexpected keyword argument" in str(error):
            name = str(error).split("'")[1]
            raise click.UsageError(f"a bundle of family {self._family} has no option {name!r}") from None


@bundle.command()
@click.argument("bundle", metavar="PATH|NAME")
def verify(bundle: str) -> None:
    """Check every file of a bundle against its manifest."""
    from edged.bundle import Bundle, find
    from edged.paths import bundle_directories

    path = Path(bundle) if Path(bundle).is_dir() else find(bundle, bundle_directories(_configured()))
    manifest = Bundle.load(path).manifest
    fields([("bundle", str(path)), *_facts(manifest), ("verified", "every file is as the manifest says")])


def _facts(manifest: Manifest) -> list[tuple[str, str]]:
    return [
        ("name", f"{manifest.name} {manifest.version}"),
        ("family", f"{manifest.family}, {manifest.precision} for {manifest.backend}"),
        ("voices", ", ".join(voice.name for voice in manifest.voices)),
        ("engines", ", ".join(engine.name for engine in manifest.engines)),
    ]


@bundle.command("list")
def list_bundles() -> int:
    """List the bundles the daemon can find, damaged ones too."""
    from edged.bundle import installed, read_manifest
    from edged.errors import BundleError
    from edged.paths import bundle_directories

    directories = bundle_directories(_configured())
    rows, code = [], OK
    for path in installed(directories):
        try:
            manifest = read_manifest(path)
            rows.append((path.name, manifest.family, manifest.precision, manifest.version, str(path)))
        except BundleError as error:
            rows.append((path.name, f"unusable: {error.code}", "", "", str(path)))
            code = FAILED
    if rows:
        table(("bundle", "family", "precision", "version", "path"), rows)
    else:
        complain("no bundles are installed", f"searched: {', '.join(map(str, directories))}")
    return code


def _configured() -> str:
    """voices.directory as the daemon would read it; a file we may not read does not stop these commands."""
    from edged import config
    from edged.errors import ConfigError

    try:
        return config.load(config.find()).voices.directory
    except ConfigError as error:
        complain(f"warning: the configuration is left aside: {error.message}", error.hint)
        return ""
