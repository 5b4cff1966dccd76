"""Checks of what was set up: bundles, the memory plan, the socket. Main thread.

Neighbours: `findings` runs them; `edged.bundle` and `edged.voices` do the checking of bundles.
"""

from __future__ import annotations

import getpass
import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from edged.bundle import Bundle, find
from edged.doctor import unit
from edged.doctor.findings import Case, Finding
from edged.engine import preflight, select
from edged.engine.plan import PlanRow, bound_row, total_mb
from edged.errors import BundleError, BundleMissing, ConfigError, EdgedError, GpuUnusable, NoDaemon
from edged.manifest import Manifest
from edged.paths import SOCKET, SYSTEM_RUNTIME, bundle_directories, client_endpoint, why_unsafe
from edged.settings import Settings
from edged.voices import budget
from edged.voices.catalog import BUILT_IN
from edged.voices.demand import demand

# -- bundles ------------------------------------------------------------------------------------


def bundles(case: Case) -> Iterator[Finding]:
    """Every configured bundle is there, whole, and for an engine of this machine."""
    fallback = case.settings.engine.fallback
    for wanted in dict.fromkeys([*case.settings.voices.bundles, *([fallback] if fallback else [])]):
        name = f"bundle {wanted}"
        try:
            bundle = _load(wanted, case.settings, verify=True)
            select.require(bundle.manifest.backend, str(bundle.path))
        except BundleMissing as error:
            built_later = wanted == BUILT_IN and isinstance(case.status, EdgedError)
            yield Finding.of(name, error, "warning" if built_later else "failed")
        except BundleError as error:
            yield Finding.of(name, error)
        else:
            manifest = bundle.manifest
            told = f"{manifest.name} {manifest.version} ({manifest.family}, {manifest.precision}), hashes"
            yield Finding(name, "ok", f"{told} as the manifest says, in {bundle.path}")
            yield from _gpu(wanted, manifest, case.settings)


def _gpu(wanted: str, manifest: Manifest, settings: Settings) -> Iterator[Finding]:
    """Whether this machine can run a bundle for TensorRT; where it cannot, its fallback is no failure."""
    name = f"GPU for {wanted}"
    if manifest.tensorrt is None:
        return
    if wanted == settings.engine.fallback:
        remedy = "name a bundle that was built for onnxruntime"
        yield Finding(name, "failed", "engine.fallback needs a GPU, too", remedy, ConfigError.code)
        return
    try:
        found = preflight.check(manifest.tensorrt, settings.service.memory_mb)
    except GpuUnusable as error:
        if not speaks_instead(settings):  # why, is told of that bundle
            yield Finding.of(name, error)
            return
        told = f"{error.message}; {settings.engine.fallback} (engine.fallback) speaks instead"
        yield Finding(name, "warning", told, error.hint, error.code)
    else:
        yield Finding(name, "ok", str(found))


def speaks_instead(settings: Settings) -> bool:
    """Whether `engine.fallback` names a bundle that is there and needs no GPU."""
    try:
        return (
            bool(settings.engine.fallback)
            and not _load(settings.engine.fallback, settings, False).manifest.tensorrt
        )
    except BundleError:
        return settings.engine.fallback == BUILT_IN  # which is built where it is wanted


def plan(case: Case) -> Iterator[Finding]:
    """What the bundles will take, against what is allowed."""
    settings, found = case.settings, []
    for wanted in settings.voices.bundles:
        try:
            found.append(_load(wanted, settings, verify=False))
        except BundleError:
            continue  # told above
    rows: list[PlanRow] = [bound_row("limits.reply_mb", settings.limits.reply_mb << 20)]
    rows += [row for bundle in found for row in demand(bundle, settings.engine)]
    budget.check(rows, settings.service.memory_mb, found, settings.engine)
    planned, most_mb = total_mb(rows), settings.service.memory_mb
    told = f"about {planned:.0f} of {most_mb} MB (service.memory_mb)"
    wanted_mb = planned + budget.LIBRARIES_MB
    if wanted_mb > most_mb:
        text = f"{told}; the interpreter and libraries take some {budget.LIBRARIES_MB:.0f} MB on top"
        remedy = f"raise service.memory_mb to {wanted_mb + budget.WORK_MB:.0f}, or load smaller voices"
        yield Finding("memory plan", "warning", text, remedy)
    else:
        yield Finding("memory plan", "ok", told)


def _load(name: str, settings: Settings, verify: bool) -> Bundle:
    return Bundle.load(find(name, bundle_directories(settings.voices.directory)), verify)


# -- the socket ---------------------------------------------------------------------------------


def endpoint(told: str) -> str:
    """Where the daemon is, or would be: as told, where one is, where the installed service would listen."""
    found = client_endpoint(told or None)
    if told or Path(found.removeprefix("ipc://")).exists() or unit.properties().get("LoadState") != "loaded":
        return found
    return f"ipc://{SYSTEM_RUNTIME / SOCKET}"


def socket(case: Case) -> Iterator[Finding]:
    """The file of an ipc socket: there, a socket, and this user may use it."""
    path = Path(case.endpoint.removeprefix("ipc://"))
    if not case.endpoint.startswith("ipc:///"):
        yield Finding("socket", "skipped", f"{case.endpoint} is not a file")
        return
    if reason := why_unsafe(path.parent):
        remedy = f"look whose it is: ls -ld {path.parent}; the daemon's socket is elsewhere, see --endpoint"
        yield Finding("socket", "failed", f"{path.parent} {reason}", remedy)
        return
    try:
        found = path.stat()
    except FileNotFoundError:
        yield Finding("socket", "skipped", f"{path} is not there: no daemon made it")
        return
    except OSError as exc:
        yield Finding("socket", "failed", f"{path}: {exc.strerror}", _join(None), NoDaemon.code)
        return
    group = _group(found.st_gid)
    told = f"{path}, mode {stat.S_IMODE(found.st_mode):03o}, group {group}"
    if not stat.S_ISSOCK(found.st_mode):
        yield Finding("socket", "failed", f"{path} is not a socket", "remove it and restart the daemon")
    elif not os.access(path, os.W_OK):
        yield Finding("socket", "failed", f"{told}: this user may not use it", _join(group), NoDaemon.code)
    else:
        yield Finding("socket", "ok", told)


def _join(group: str | None) -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a uid without a name
        user = "USER"
    return f"sudo usermod -aG {group or 'GROUP'} {user}, then log in again"


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
