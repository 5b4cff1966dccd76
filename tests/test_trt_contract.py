"""Every name and signature of TensorRT and pycuda in the code, held against the real bindings.

The bindings are looked at in a process for each version, which prints what it found; nothing of TensorRT
runs. Attributes of modules are resolved as they are written. Calls of native objects are known by the name of
the variable that holds one (`_HOLDERS`), and must fit a signature in the docstring that pybind11 writes.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cuda import fake
from tests.trt import bindings

ROOT = Path(__file__).resolve().parent.parent
# In modules that use TensorRT: what a variable or attribute of this name holds.
_HOLDERS = {
    ("NativeEngine", "_native"): "ICudaEngine",
    ("NativeContext", "_native"): "IExecutionContext",
    ("", "runtime"): "Runtime",
    ("", "builder"): "Builder",
    ("", "config"): "IBuilderConfig",
    ("", "parser"): "OnnxParser",
    ("", "profile"): "IOptimizationProfile",
    ("", "cache"): "ITimingCache",
    ("", "inspector"): "EngineInspector",
    ("", "definition"): "INetworkDefinition",
    ("", "shapes"): "IOptimizationProfile",
    ("", "engine"): "ICudaEngine",
    ("", "error"): "ParserError",
}
# Gone in one of the versions: never to be used, whoever holds them.
_GONE = {
    "device_memory_size",
    "get_device_memory_size_for_profile",
    "create_execution_context_without_device_memory",
    "weight_streaming_budget",
    "max_workspace_size",
    "EXPLICIT_BATCH",
    "FP16",
    "BF16",
    "INT8",
    "IStreamReader",
    "execute_async_v2",
    "get_binding_index",
}
# In the process with the bindings: which of the names and calls given to it are not there, or do not fit.
_LOOK = r"""
import ctypes, importlib, json, re, sys
wanted = json.load(sys.stdin)
if "library" in wanted:
    ctypes.CDLL(wanted["library"], ctypes.RTLD_GLOBAL)
module = importlib.import_module(wanted["module"])

def parts(text):
    depth, found, now = 0, [], ""
    for letter in text:
        depth += letter in "[(<{"
        depth -= letter in "])>}"
        if letter == "," and not depth:
            found.append(now.strip()); now = ""
        else:
            now += letter
    return [*found, now.strip()] if now.strip() else found

def signatures(function):
    found = []
    for line in (function.__doc__ or "").splitlines():
        match = re.match(r"^(?:\d+\. )?\w+\((self: .*?|self)\)(?: ->.*)?$", line.strip())
        if match:
            args = [(p.partition(":")[0].partition("=")[0].strip(), "=" in re.sub(r"<[^>]*>", "", p))
                    for p in parts(match[1])][1:]
            found.append(args)
    return found

bad = []
for name in wanted["names"]:
    thing = module
    for part in name.split("."):
        thing = getattr(thing, part, bad)
        if thing is bad:
            bad.append(f"{name}: not there"); break
for kind, name, count, keywords in wanted["calls"]:
    method = getattr(getattr(module, kind, None), name, None)
    if method is None:
        bad.append(f"{kind}.{name}: not there"); continue
    known = signatures(method)
    def fits(args):
        names = [a for a, _ in args]
        given = set(names[:count]) | set(keywords)
        needed = {a for a, optional in args if not optional}
        return count <= len(args) and set(keywords) <= set(names[count:]) and needed <= given
    if count >= 0 and known and not any(map(fits, known)):
        bad.append(f"{kind}.{name}: {count} arguments and {keywords}, known are {known}")
for kind, name, parameters in wanted["methods"]:
    method = getattr(getattr(module, kind, None), name, None)
    known = signatures(method) if method is not None else []
    # What native code calls by position need have the number of parameters only.
    found = [len(args) if isinstance(parameters, int) else [a for a, _ in args] for args in known]
    if parameters not in found:
        bad.append(f"{kind}.{name}({parameters}): known are {known}")
print(json.dumps({"version": getattr(module, "__version__", ""), "bad": bad, "looked": len(wanted["calls"])}))
"""


def importers(package: str, folder: Path = ROOT / "edged") -> dict[Path, ast.Module]:
    """The modules that import a package, at the top or inside, by name or with `need`."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in (
                "need",
                "import_module",
            ):
                names += [a.value for a in node.args[:1] if isinstance(a, ast.Constant)]
            if any(name.partition(".")[0] == package for name in names):
                found[path] = tree
    return found


def dotted(node: ast.AST) -> str:
    """a.b.c of an expression, "" for others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


def names(tree: ast.Module, root: str) -> set[str]:
    """root.A.B in the code, as A.B."""
    found = {dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {name.removeprefix(f"{root}.") for name in found if name.startswith(f"{root}.")}


def uses(tree: ast.Module) -> Iterator[tuple[str, str, int, list[str]]]:
    """Of native objects: class, attribute, and of a call the number of positional arguments and the keywords;
    -1 for what is not called."""
    for owner in [tree, *[node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]]:
        within = owner.name if isinstance(owner, ast.ClassDef) else ""
        called = {id(node.func) for node in ast.walk(owner) if isinstance(node, ast.Call)}
        for node in ast.walk(owner):
            target = node.func if isinstance(node, ast.Call) else node
            if not isinstance(target, ast.Attribute) or (node is target and id(node) in called):
                continue
            kind = _HOLDERS.get((within, dotted(target.value).rpartition(".")[2]))
            if kind is None:
                continue
            if isinstance(node, ast.Call):
                yield kind, target.attr, len(node.args), [k.arg for k in node.keywords if k.arg]
            else:
                yield kind, target.attr, -1, []


def overridden(tree: ast.Module, root: str) -> Iterator[tuple[str, str, int]]:
    """Public methods of classes that build on a native one: the class, the method, its parameters."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for base in node.bases:
            kind = dotted(base)
            if not kind.startswith(f"{root}."):
                continue
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    yield (
                        kind.removeprefix(f"{root}."),
                        method.name,
                        len(method.args.args) - 1,
                    )


def looked(module: str, folder: Path, wanted: dict[str, Any], env: dict[str, str]) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-c", _LOOK],
        input=json.dumps({"module": module, **wanted}),
        env={**env, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


def asked() -> dict[str, Any]:
    """Of tensorrt: what the code has."""
    found: dict[str, Any] = {"names": set(), "calls": [], "methods": []}
    for tree in importers("tensorrt").values():
        both = names(tree, "trt") | names(tree, "self._trt")
        found["names"] |= {name for name in both if not name.startswith("__")}
        found["calls"] += uses(tree)
        found["methods"] += overridden(tree, "trt")
    return {**found, "names": sorted(found["names"])}


@pytest.mark.parametrize("version", bindings.VERSIONS)
def test_the_bindings_have_what_is_used(version: str) -> None:
    reason = bindings.unavailable(version)
    if reason:
        pytest.skip(reason)
    found = looked("tensorrt", bindings.PREPARED / version, asked(), dict(os.environ))
    assert found["version"] == version
    assert found["bad"] == []
    assert found["looked"] >= 12


def test_the_look_finds_what_is_wrong() -> None:
    version = next((v for v in bindings.VERSIONS if not bindings.unavailable(v)), "")
    if not version:
        pytest.skip(bindings.unavailable(bindings.VERSIONS[0]))
    wrong = {
        "names": ["TensorIOMode.INPUTS", "Runtime"],
        "calls": [
            ("ICudaEngine", "get_tensor_mode", 2, []),
            ("ICudaEngine", "get_tensor_mode", 0, ["named"]),
            ("ICudaEngine", "get_tensor_mode", 0, ["name"]),
            ("IExecutionContext", "execute_async_v9", 1, []),
        ],
        "methods": [("IGpuAllocator", "allocate", ["size", "flags"])],
    }
    found = looked("tensorrt", bindings.PREPARED / version, wrong, dict(os.environ))
    starts = [text.partition(":")[0] for text in found["bad"]]
    assert starts == [
        "TensorIOMode.INPUTS",
        "ICudaEngine.get_tensor_mode",
        "ICudaEngine.get_tensor_mode",
        "IExecutionContext.execute_async_v9",
        "IGpuAllocator.allocate(['size', 'flags'])",
    ]


def test_what_was_removed_is_not_used() -> None:
    trees = importers("tensorrt")
    assert trees
    for path, tree in trees.items():
        for node in ast.walk(tree):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            assert name not in _GONE, f"{path}:{getattr(node, 'lineno', 0)}: {name}"


def test_native_objects_stay_in_the_modules_that_import_tensorrt() -> None:
    """Those are looked at; a call elsewhere would not be."""
    known = importers("tensorrt")
    assert {str(path.relative_to(ROOT)) for path in known} == {
        "edged/compiler/trt.py",
        "edged/engine/trt_runtime.py",
    }
    native = {"execute_async_v3", "set_tensor_address", "create_execution_context", "deserialize_cuda_engine"}
    for path in sorted((ROOT / "edged").rglob("*.py")):
        used = {
            node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
        }
        assert path in known or not used & native, path


def test_one_module_of_the_daemon_imports_each() -> None:
    def served(package: str) -> set[str]:
        found = (str(path.relative_to(ROOT)) for path in importers(package))
        return {path for path in found if not path.startswith("edged/compiler/")}

    assert served("tensorrt") == {"edged/engine/trt_runtime.py"}
    assert served("pycuda") == {"edged/engine/cuda.py"}


@pytest.mark.parametrize("version", bindings.VERSIONS)
def test_the_stand_ins_have_the_real_signatures(version: str) -> None:
    reason = bindings.unavailable(version)
    if reason:
        pytest.skip(reason)
    real = {"Engine": "ICudaEngine", "Context": "IExecutionContext", "Config": "IBuilderConfig"}
    real |= {"Profile": "IOptimizationProfile", "Cache": "ITimingCache", "Inspector": "EngineInspector"}
    real |= {"Plan": "ICudaEngine"} | {name: name for name in ("Builder", "OnnxParser", "Runtime")}
    trees = [
        ast.parse((ROOT / f"tests/trt/{name}.py").read_text()) for name in ("standin", "standin_builder")
    ]
    methods = []
    for node in (node for tree in trees for node in tree.body):
        if isinstance(node, ast.ClassDef) and node.name in real:
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                    parameters = [argument.arg for argument in method.args.args][1:]
                    methods.append((real[node.name], method.name, parameters))
    assert len(methods) > 25
    wanted = {"names": [], "calls": [], "methods": methods}
    found = looked("tensorrt", bindings.PREPARED / version, wanted, dict(os.environ))
    assert found["bad"] == []


def test_pycuda_has_what_is_used(tmp_path: Path) -> None:
    reason = fake.unavailable()
    if reason:
        pytest.skip(reason)
    found: set[str] = set()
    for path in (ROOT / "edged/engine").glob("cuda*.py"):
        tree = ast.parse(path.read_text())
        every = {dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for name in every:
            match = re.match(r"^(?:self\._cuda|cuda|native|pycuda\.driver)\.([A-Za-z]\w*(?:\.\w+)*)$", name)
            if match and path.name != "cuda_driver.py":
                found.add(match[1])
    assert {"mem_alloc", "Stream", "memcpy_htod_async"} <= found, found
    library = fake.build(tmp_path)
    wanted = {"names": sorted(found), "calls": [], "methods": [], "library": str(library)}
    seen = looked("pycuda.driver", fake.PREPARED, wanted, fake.environment(library))
    assert seen["bad"] == []
