"""`edged bundle build | verify | list`: the voices on this machine. Main thread. `store` has the others.

Neighbours: `edged.bundle`, `edged.compiler` and `edged.config`, imported when their command runs.
"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edged.cli import store
from edged.cli.context import State, json_option, pass_state
from edged.cli.exits import FAILED, OK, complain, document, tell, write_json
from edged.cli.render import fields, progress_bar, table

if TYPE_CHECKING:
    from edged.bundle import Bundle, Manifest


@click.group()
def bundle() -> None:
    """Build, check and list voice bundles; install, try, use and take back versions of them."""


for _command in (store.install, store.activate, store.rollback, store.prune):
    bundle.add_command(_command)


@bundle.command()
@click.argument("family")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The bundle's own directory.")
@click.option("--set", "options", multiple=True, metavar="NAME=VALUE", help="An option of the family.")
@click.option("--checkpoint", type=click.Path(path_type=Path), help="chattts: the folder with its weights.")
@click.option("--precision", help="chattts: fp32, int8 or int4 (default); TensorRT: fp16 (default) as well.")
@click.option("--backend", help="chattts: onnxruntime (default), or tensorrt for the GPU of this machine.")
@click.option(
    "--speaker", "speakers", multiple=True, metavar="NAME=CODE", help="chattts: a voice (or =@FILE)."
)
@click.option("--spk-stat", type=click.Path(path_type=Path), help="chattts: statistics of random voices.")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="PATTERN=PRECISION",
    help="chattts: another precision for layers, such as 'layers.0.*=int8'.",
)
@click.option("--with-encoder", is_flag=True, default=None, help="chattts: for `edged voice enroll`.")
@click.option(
    "--calibrate",
    is_flag=True,
    default=None,
    help="chattts: round 4-bit layers by sample sentences (minutes).",
)
@click.option("--positions", type=int, help="chattts: tokens of an utterance, prompt and speech (1024).")
@click.option("--slots", type=int, help="chattts: utterances spoken at once (4).")
@click.option("--kv", metavar="TYPE", help="chattts: key/value cache in float32, float16 or int8 (default).")
@click.option("--timing-cache", metavar="FILE", help="TensorRT: keeps kernel timings (beside the bundle).")
@click.option("--workspace", type=click.IntRange(min=1), metavar="MB", help="TensorRT: scratch memory, most.")
@click.option(
    "--plugin", type=click.Path(dir_okay=False), help="TensorRT: a library of deploy/jetson/plugin."
)
@click.option(
    "--no-native", is_flag=True, default=None, help="chattts: ONNX Runtime only, for any processor."
)
def build(family: str, out: Path | None, options: tuple[str, ...], **family_options: Any) -> None:
    """Build a bundle of FAMILY (chattts, hibari, tone) where the daemon finds it, or in --out.

    Where versions of it are installed there, it becomes one more: use it with `edged bundle activate`.
    """
    from edged import compiler
    from edged.errors import BadValue
    from edged.manifest import MANIFEST
    from edged.paths import writable_bundle_directory
    from edged.store import Store

    if family == "chattts" and family_options["checkpoint"] is None:
        raise click.UsageError("a bundle of family chattts needs --checkpoint DIR")
    given = {name: value for name, value in family_options.items() if value not in (None, ())}
    given |= dict(_option(text) for text in options)
    try:
        compiler.check(family, given)
    except BadValue as error:
        raise click.BadParameter(str(error), param_hint="options") from None
    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: what is half built is taken away
        signal.signal(number, signal.default_int_handler)
    target = out or writable_bundle_directory(_configured()) / str(given.get("name", family))
    if not target.is_symlink():
        with progress_bar() as progress:
            tell(compiler.build(family, target, progress, **given))
        return
    # A link of the store: the version that it leads to is described by its name and hash, and stays as it is.
    beside = target.with_name(f".{target.name}.built")
    if (
        given.get("backend") == "tensorrt"
    ):  # what was measured for the bundle of this name, wherever it was built
        given.setdefault("timing_cache", f"{target.absolute()}.timings")
    try:
        if (target / MANIFEST).is_file():  # what is built instead of it must not drop its voices
            beside.mkdir(exist_ok=True)
            shutil.copy(target / MANIFEST, beside)
        with progress_bar() as progress:
            compiler.build(family, beside, progress, **given)
        store.put_in(Store(target.parent), beside)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _option(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value read as YAML so that numbers and true/false are what they look like."""
    import yaml

    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise click.UsageError(f"--set {text}: expected NAME=VALUE")
    try:
        return name, yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, RecursionError):  # as 2026-99-99, or ten thousand brackets
        return name, value


def locate(bundle: str) -> Path:
    """The folder of a bundle by path, or by name where the daemon would look."""
    from edged.bundle import find
    from edged.paths import bundle_directories

    return Path(bundle) if Path(bundle).is_dir() else find(bundle, bundle_directories(_configured()))


@bundle.command()
@click.argument("bundle", metavar="PATH|NAME")
@click.option("--against", type=click.Path(path_type=Path), help="Compare with this ChatTTS checkpoint, too.")
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), help="Write figures and plots.")
def verify(bundle: str, against: Path | None, report: Path | None) -> None:
    """Check every file of a bundle against its manifest, and its numbers against a checkpoint.

    Of a bundle for TensorRT it shows the figures that were measured when it was built.
    With --against, it fails when a figure is beyond the threshold in the manifest.
    """
    from edged.bundle import Bundle

    if report is not None and against is None:
        raise click.UsageError("--report goes with --against CHECKPOINT")
    checked = Bundle.load(locate(bundle))
    facts = _facts(checked.manifest)
    fields([("bundle", str(checked.path)), *facts, ("verified", "every file is as the manifest says")])
    _figures(checked.manifest)
    if against is not None:
        _compare(checked, against, report)


def _figures(manifest: Manifest) -> None:
    """What was measured of a bundle for TensorRT. Raises `BundleInaccurate`."""
    from edged.precision import check_precision, demanded, verdicts

    if manifest.tensorrt is not None:
        tell("\nmeasured against fp32 when it was built:")
        for verdict in verdicts(manifest.tensorrt.measured, demanded(manifest.thresholds)):
            tell(f"{'ok' if verdict.passed else 'FAILED':8}{verdict}")
    check_precision(manifest)


def _compare(checked: Bundle, against: Path, folder: Path | None) -> None:
    from edged.compiler.chattts import report, verify
    from edged.errors import BundleInaccurate

    with progress_bar() as progress:
        measured = verify.measure(checked, against, progress)
    print()
    table(("figure", "measured", "threshold", "verdict"), report.rows(measured))
    if not measured.same_checkpoint:
        complain("warning: this is not the checkpoint that the bundle was built from")
    if folder is not None:
        report.write(measured, folder)
        tell(f"\nreport: {folder}")
    failed = [name for name, passed in measured.verdicts().items() if not passed]
    if failed:
        raise BundleInaccurate(f"{checked.path}: beyond the threshold: {', '.join(failed)}")


def _facts(manifest: Manifest) -> list[tuple[str, str]]:
    built = manifest.tensorrt
    gpu = (
        f"TensorRT {built.version}, a driver for CUDA {built.cuda}, {built.device} (compute capability "
        f"{built.capability}), {built.device_mb:.0f} MB there"
        if built
        else ""
    )
    return [
        ("name", f"{manifest.name} {manifest.version}"),
        ("family", f"{manifest.family}, {manifest.precision} for {manifest.backend}"),
        *([("built with", gpu)] if gpu else []),
        ("voices", ", ".join(voice.name for voice in manifest.voices)),
        ("engines", ", ".join(engine.name for engine in manifest.engines)),
    ]


@bundle.command("list")
@json_option
@pass_state
def list_bundles(state: State) -> int:
    """List the bundles the daemon can find, damaged ones too.

    Every file is looked for and its size compared; `edged bundle verify` reads the content as well.
    """
    from edged.bundle import installed
    from edged.paths import bundle_directories

    directories = bundle_directories(_configured())
    found = [_entry(path) for path in installed(directories)]
    if state.as_json:
        write_json(document({"bundles": found, "searched": [str(path) for path in directories]}))
    elif found:
        columns = ("bundle", "role", "state", "family", "precision", "backend", "version", "path")
        table(columns, [[entry[column] for column in columns] for entry in found])
        for entry in found:
            if entry["message"]:
                complain(f"error [{entry['state']}]: {entry['message']}", entry["hint"])
    else:
        complain("no bundles are installed", f"searched: {', '.join(map(str, directories))}")
    return OK if all(entry["state"] == "ok" for entry in found) else FAILED


def _entry(path: Path) -> dict[str, str]:
    """What is told about a bundle; its `state` is ok or the code of what is wrong with it.

    role: of a version in the store, current, previous or spare.
    """
    from edged.bundle import Bundle, read_manifest
    from edged.errors import BundleError
    from edged.store import Store

    entry = dict.fromkeys(("family", "precision", "backend", "version", "message", "hint"), "")
    roles = {v.path.name: v.role or "spare" for v in Store(path.parent).versions()}
    entry |= {"bundle": path.name, "role": roles.get(path.name, ""), "state": "ok", "path": str(path)}
    try:
        manifest = read_manifest(path)
        entry |= {
            "family": manifest.family,
            "precision": manifest.precision,
            "backend": manifest.backend,
            "version": manifest.version,
        }
        Bundle.load(path, verify=False)
    except BundleError as error:
        entry |= {"state": error.code, "message": error.message, "hint": error.hint}
    return entry


def _configured() -> str:
    """voices.directory as the daemon would read it; a file we may not read does not stop these commands."""
    from edged import config
    from edged.errors import ConfigError

    try:
        return config.load(config.find()).voices.directory
    except ConfigError as error:
        complain(f"warning: the configuration is left aside: {error.message}", error.hint)
        return ""
