"""Imports point down only. Every module has its place in the drawing below; a new one must be given one.

cli  ->  service  ->  server, worker, watchdog, systemd
     ->  protocol, scheduler, text, voices, audio, stats  ->  engine, bundle
     ->  config, settings, paths, log, job, errors
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent / "edged"

# A part is a module or package right below edged; helpers that belong to a part are named with it.
PARTS = {
    "cli": {"__main__", "cli", "doctor", "bench"},
    "client": {"client"},
    "compiler": {"compiler"},
    "service": {"service", "attempts", "engines", "lexicons", "patience", "reload", "signals", "takeover"},
    "server": {
        "server",
        "admission",
        "console",
        "delivery",
        "desk",
        "doorkeeper",
        "endpoints",
        "explanations",
        "first_look",
        "forecast",
        "monitor",
        "outgoing",
        "params",
    },
    "worker": {"worker", "outflow"},
    "watchdog": {"watchdog", "pressure", "footprint", "faults"},
    "systemd": {"systemd"},
    "protocol": {"protocol"},
    "stats": {"stats", "meter", "metrics", "exporter", "exporter_http"},
    "scheduler": {"scheduler", "turns"},
    "text": {"text"},
    "voices": {"voices"},
    "audio": {"audio"},
    "engine": {"engine", "native"},
    "bundle": {
        "bundle",
        "bundle_write",
        "manifest",
        "manifest_limits",
        "precision",
        "store",
        "store_files",
        "store_install",
        "store_lock",
        "store_names",
    },
    "config": {"config", "config_nodes"},
    "log": {"log", "journal", "notices", "relay"},
    "paths": {"paths"},
    "settings": {"settings"},
    "job": {"job"},
    "errors": {"errors"},
    "explained": {"explained"},  # what an explanation of a text consists of
    "escape": {"escape"},  # what a terminal would obey, made visible
    "threads": {"threads"},  # names for threads
    "controls": {"controls"},  # what a request may ask of a voice
    "words": {"words"},  # types in plain words
    "version": {"__init__"},  # edged itself: the version number
}
LEAVES = {"controls", "errors", "explained", "escape", "job", "settings", "threads", "words"}
BASE = {"config", "paths", "log"} | LEAVES
ENGINES = {"engine", "bundle"}
MIDDLE = {"protocol", "stats", "scheduler", "text", "voices", "audio"}
UPPER = {"server", "worker", "watchdog", "systemd"}

# What each part may import. Within a level only the arrows named here exist.
ALLOWED: dict[str, set[str]] = {
    "version": set(),
    **{part: {"errors", "job"} for part in LEAVES},
    "paths": {"errors"},
    "log": LEAVES,
    "config": LEAVES | {"paths"},
    "engine": BASE,
    "bundle": BASE | {"engine"},  # a manifest names tensors and backends
    **dict.fromkeys(MIDDLE, BASE | ENGINES),
    **dict.fromkeys(UPPER, BASE | ENGINES | MIDDLE),
    "service": BASE | ENGINES | MIDDLE | UPPER,
    "client": {"protocol", "controls", "errors", "paths", "job"},
    "compiler": {
        "engine",
        "voices",
        "bundle",
        "errors",
        "job",
        "log",  # a build warns
        "settings",
        "words",
        "text",  # the texts that a build is checked with
    },  # settings: what an engine is loaded with; words: what an option may be; job: the trial run
    "cli": set(PARTS),
}
ALLOWED["settings"] |= {"controls"}  # the ranges of a voice's defaults
ALLOWED["scheduler"] = LEAVES  # pure Python: no tensor library, no engine
ALLOWED["text"] = BASE | {"voices"}  # the text stage drives a voice's frontend
ALLOWED["voices"] |= {"text"}  # a frontend uses the common splitting and numbers
ALLOWED["stats"] |= {"protocol"}  # the numbers of the status reply
ALLOWED["audio"] |= {"protocol"}  # audio formats as clients name them
LAZY = {"compiler"}  # imported inside functions only: the running daemon never loads it


class Import(NamedTuple):
    module: str
    target: str
    line: int
    lazy: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def modules(root: Path) -> dict[str, Path]:
    """Dotted name -> file; `edged.text` for edged/text/__init__.py."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(root: Path) -> Iterator[Import]:
    known = modules(root)
    for module, path in known.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        inside = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            for node in ast.walk(function)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                names = [f"{base}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                if name.split(".")[0] != root.name:
                    continue
                while name not in known and "." in name:  # a name inside a module
                    name = name.rpartition(".")[0]
                yield Import(module, name, node.lineno, id(node) in inside)


def part_of(module: str) -> str | None:
    first = [*module.split("."), "__init__"][1]
    return next((part for part, names in PARTS.items() if first in names), None)


def faults(root: Path) -> list[str]:
    """Everything that does not fit the drawing."""
    found = [f"{m} has no place in tests/test_imports.py" for m in modules(root) if part_of(m) is None]
    for item in imports(root):
        source, target = part_of(item.module), part_of(item.target)
        if source is None or target is None or source == target or target == "version":
            continue
        if target not in ALLOWED[source]:
            found.append(f"{item}: {source} may not import {target}")
        elif target in LAZY and not item.lazy:
            found.append(f"{item}: only inside a function")
    return found


def cycle(root: Path) -> list[str]:
    """One cycle of modules, or an empty list."""
    graph: dict[str, set[str]] = {module: set() for module in modules(root)}
    for item in imports(root):
        if item.target != item.module:
            graph[item.module].add(item.target)
    done: set[str] = set()

    def walk(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module not in done:
            for target in sorted(graph[module]):
                if ring := walk(target, [*trail, module]):
                    return ring
            done.add(module)
        return []

    return next((ring for module in graph if (ring := walk(module, []))), [])


def test_imports_point_down() -> None:
    assert faults(ROOT) == []


def test_no_cycles() -> None:
    assert cycle(ROOT) == []


def test_the_walk_sees_this_package() -> None:
    seen = {(item.module, item.target) for item in imports(ROOT)}
    assert ("edged.config", "edged.config_nodes") in seen
    assert ("edged.job", "edged.errors") in seen
    assert set(ALLOWED) == set(PARTS)
    assert set().union(*ALLOWED.values()) <= set(PARTS)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"surprise.py": ""}, "edged.surprise has no place"),
        ({"surprise/__init__.py": "", "surprise/x.py": ""}, "edged.surprise.x has no place"),
        ({"server.py": "from edged.worker import Worker", "worker.py": ""}, "server may not import worker"),
        ({"worker.py": "import edged.server", "server.py": ""}, "worker may not import server"),
        ({"worker.py": "from edged import admission", "admission.py": ""}, "worker may not import server"),
        (
            {"engine/ort.py": "from .. import scheduler", "scheduler.py": ""},
            "engine may not import scheduler",
        ),
        (
            {"engine/ort.py": "from ..voices.api import V", "voices/api.py": ""},
            "engine may not import voices",
        ),
        ({"settings.py": "def f():\n  from edged import log", "log.py": ""}, "settings may not import log"),
        ({"client.py": "import edged.service as s", "service.py": ""}, "client may not import service"),
        (
            {"service.py": "def f():\n  import edged.compiler.onnx", "compiler/onnx.py": ""},
            "may not import comp",
        ),
        ({"cli.py": "from edged.compiler import build", "compiler/build.py": ""}, "only inside a function"),
        (
            {"compiler/build.py": "from edged.service import x", "service.py": ""},
            "compiler may not import serv",
        ),
        (
            {"scheduler.py": "import edged.engine", "engine/__init__.py": ""},
            "scheduler may not import engine",
        ),
        (
            {"text/a.py": "if 1:\n  from edged.service import x", "service.py": ""},
            "text may not import service",
        ),
    ],
)
def test_each_rule_can_be_broken(tmp_path: Path, files: dict[str, str], says: str) -> None:
    found = faults(package(tmp_path, files))
    assert found
    assert all(says in fault or "has no place" in fault for fault in found)
    assert says in "\n".join(found)


def test_good_packages_have_no_faults(tmp_path: Path) -> None:
    files = {
        "cli.py": "from edged import __version__, service\ndef f():\n  from edged.compiler import build",
        "compiler/build.py": "from edged.errors import E\nimport numpy, os",
        "service.py": "from edged.server import S\nfrom edged.worker import W",
        "server.py": "from edged import protocol",
        "worker.py": "from edged.voices.api import V",
        "voices/api.py": "from . import other",
        "voices/other.py": "",
        "protocol.py": "from edged.errors import E",
        "errors.py": "",
    }
    root = package(tmp_path, files)
    assert faults(root) == []
    assert cycle(root) == []


@pytest.mark.parametrize(
    "files",
    [
        {"text/a.py": "from edged.text import b", "text/b.py": "def f():\n  import edged.text.a"},
        {"text/a.py": "from .b import x", "text/b.py": "from .c import x", "text/c.py": "from .a import x"},
        {"text/__init__.py": "from edged.text.a import x", "text/a.py": "from edged.text import y"},
    ],
)
def test_cycles_are_found(tmp_path: Path, files: dict[str, str]) -> None:
    ring = cycle(package(tmp_path, files))
    assert ring[0] == ring[-1]
    assert len(ring) == len(files) + 1


def package(place: Path, files: dict[str, str]) -> Path:
    root = place / "edged"
    for name, source in {"__init__.py": "", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)
    return root
