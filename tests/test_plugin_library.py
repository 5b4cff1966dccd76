"""The plugin's code for TensorRT: it compiles for each GPU, does its part, and is loaded with care."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from ctypes import Structure, c_int32, c_int64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edged.engine.plugins import VERSION, load_plugin
from edged.errors import PluginUnusable
from tests.masked_pos_enc import PLUGIN, TESTS, Call, compile_cpp, expected
from tests.plugin_library import library, plugin, registry

FLOAT, HALF, INT32 = 0, 1, 3  # of TensorRT's DataType
TYPES = {"float32": FLOAT, "float16": HALF, "int32": INT32}


@pytest.fixture(scope="module")
def nvcc() -> str:
    found = os.environ.get("NVCC") or shutil.which("nvcc")
    if not found:
        pytest.skip("no nvcc: the kernels are not compiled")
    return found


@pytest.fixture(scope="module")
def tensorrt() -> Path:
    """A folder with TensorRT's headers: $TENSORRT/include, or where JetPack has them."""
    places = [Path(os.environ["TENSORRT"], "include")] if "TENSORRT" in os.environ else []
    places += [Path("/usr/include"), *Path("/usr/include").glob("*-linux-gnu")]
    for place in places:
        if (place / "NvInfer.h").is_file():
            return place
    pytest.skip("no NvInfer.h: set TENSORRT to a folder with include/ to compile the plugin against it")


# -- kernels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["sm_72", "sm_87", "sm_90", "sm_110", "sm_120"])
def test_the_kernels_compile(nvcc: str, arch: str, tmp_path: Path) -> None:
    known = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True, check=True).stdout
    if arch not in known.split():
        pytest.skip(f"this nvcc has no {arch}: it has {', '.join(known.split())}")
    made = tmp_path / "kernels.cubin"
    source = PLUGIN / "masked_pos_enc.cu"
    options = ("-std=c++17", "-O3", f"-arch={arch}", "-cubin", "-Werror", "all-warnings", "-Xptxas", "-v")
    found = subprocess.run(
        [nvcc, *options, str(source), "-o", str(made)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert made.read_bytes().startswith(b"\x7fELF")
    reports = [line for line in found.stderr.splitlines() if "spill" in line]
    assert len(reports) == 4  # each pair of types
    assert all("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in line for line in reports)


def test_the_kernels_alone_are_a_library_without_tensorrt(nvcc: str, tmp_path: Path) -> None:
    """For checks on any NVIDIA machine. What it can refuse before the device, it refuses."""
    path, source = tmp_path / "kernels.so", PLUGIN / "masked_pos_enc.cu"
    options = ("-std=c++17", "-arch=sm_87", "-shared", "-Xcompiler", "-fPIC")
    subprocess.run([nvcc, *options, str(source), "-o", str(path)], check=True, timeout=100)
    kernels = ctypes.CDLL(str(path))
    call = Call(rows=0, steps=1, heads=2, width=6)
    assert kernels.masked_pos_enc(ctypes.byref(call), None) == 0  # nothing to do
    call.rows, call.width = 1, 5
    assert kernels.masked_pos_enc(ctypes.byref(call), None) == 1  # cudaErrorInvalidValue: an odd width


def test_the_build_script_makes_a_library(nvcc: str, tensorrt: Path, tmp_path: Path) -> None:
    """Linked against a stand-in for TensorRT with the driver's registry; the daemon's loader takes it."""
    root = tmp_path / "tensorrt"
    (root / "lib").mkdir(parents=True)
    (root / "include").symlink_to(tensorrt)
    stub = tmp_path / "stub.cpp"
    text = (TESTS / "plugin_driver.cpp").read_text(encoding="utf-8")
    stub.write_text(text[: text.index('extern "C" cudaError_t')], encoding="utf-8")
    name = "-Wl,-soname,libnvinfer.so.10"
    made = _with_headers(tensorrt, "-shared", name, stub, "-o", root / "lib/libnvinfer.so")
    assert made.returncode == 0, made.stderr
    library = tmp_path / "masked_pos_enc.so"
    found = subprocess.run(
        [str(PLUGIN / "build.sh"), "sm_87", str(library)],
        env=os.environ | {"NVCC": nvcc, "TENSORRT": str(root)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    code = """
import ctypes, pathlib, sys
from edged.engine.plugins import load_plugin
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)  # as `import tensorrt` does
load_plugin(pathlib.Path(sys.argv[2]))
load_plugin(pathlib.Path(sys.argv[2]))
"""
    names = [str(root / "lib/libnvinfer.so"), str(library)]
    ran = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


# -- the plugin, driven as TensorRT does --------------------------------------------------------


class Tensor(Structure):
    _fields_ = [("address", c_void_p), ("type", c_int32), ("rank", c_int32), ("sizes", c_int64 * 4)]


def _with_headers(tensorrt: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    cuda = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"
    if not (cuda / "cuda_runtime.h").is_file():
        pytest.skip(f"no CUDA headers in {cuda}: set CUDA_HOME")
    flags = ("-Wno-deprecated-declarations", "-Wno-unused-function", "-Wno-unused-variable")
    return compile_cpp(*flags, "-isystem", tensorrt, "-isystem", cuda, *arguments)


@pytest.fixture(scope="module")
def driver(tensorrt: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("driver") / "driver.so"
    sources = (TESTS / "plugin_driver.cpp", PLUGIN / "plugin.cpp", TESTS / "masked_pos_enc.cpp")
    made = _with_headers(tensorrt, "-shared", *sources, "-o", path)
    assert made.returncode == 0, made.stderr
    return ctypes.CDLL(str(path))


class Layer:
    """Inputs and outputs of the node at small sizes, and the result it must have."""

    def __init__(self, kind: str, cache: str, *, in_place: bool, mask: bool) -> None:
        rng, (rows, steps, heads, slots, width) = np.random.default_rng(0), (2, 3, 2, 8, 6)
        angles = rng.normal(0, 1, (slots, width // 2)).astype(np.float32)
        self.past = rng.normal(0, 1, (2, rows, heads, slots, width)).astype(cache)
        self.first = np.array([1, 4], np.int32)
        self.tables = np.cos(angles), np.sin(angles)
        self.qkv = rng.normal(0, 1, (rows, steps, 3 * heads * width)).astype(kind)
        self.before = self.past.copy()
        self.present = self.past if in_place else np.full_like(self.past, np.nan)
        self.query = np.full((rows, heads, steps, width), np.nan, kind)
        self.mask = [np.full((rows, 1, steps, slots), np.nan, np.float32)] if mask else []

    @property
    def inputs(self) -> list[NDArray[Any]]:
        return [self.qkv, *self.past, self.first, *self.tables]

    def run(self, driver: ctypes.CDLL) -> tuple[int, int]:
        """(step that failed or 0, copies of whole caches)."""
        arrays = [*self.inputs, self.query, *self.present, *self.mask]
        tensors = (Tensor * len(arrays))()
        for tensor, array in zip(tensors, arrays, strict=True):
            tensor.address, tensor.type = array.ctypes.data, TYPES[array.dtype.name]
            tensor.rank = array.ndim
            tensor.sizes[: array.ndim] = array.shape
        copied = c_int32(-1)
        failed = driver.drive(tensors, 3 + len(self.mask), ctypes.byref(copied))
        return failed, copied.value


@pytest.mark.parametrize("mask", [True, False], ids=["mask", "no mask"])
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "apart"])
@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("cache", ["float32", "float16"])
def test_the_plugin_does_its_part(
    driver: ctypes.CDLL, kind: str, cache: str, in_place: bool, mask: bool
) -> None:
    layer = Layer(kind, cache, in_place=in_place, mask=mask)
    query, keys, values, hidden = expected(layer.qkv, *layer.before, layer.first, layer.tables)
    assert layer.run(driver) == (0, 0 if in_place else 2)
    place = 2e-3 if "float16" in (kind, cache) else 1e-6
    np.testing.assert_allclose(layer.query, query, atol=place)
    np.testing.assert_allclose(layer.present[0], keys, atol=place)
    np.testing.assert_allclose(layer.present[1], values, atol=place)
    for found in layer.mask:
        np.testing.assert_array_equal(found, hidden)
    if not in_place:
        np.testing.assert_array_equal(layer.past, layer.before)


def test_shapes_and_types_that_do_not_fit_are_refused(driver: ctypes.CDLL) -> None:
    def failing(**changed: Any) -> int:
        layer = Layer("float32", "float32", in_place=True, mask=True)
        for name, value in changed.items():
            setattr(layer, name, value)
        return layer.run(driver)[0]

    types, configure = 6, 9
    assert failing() == 0
    assert failing(first=np.zeros(2, np.float32)) == types
    assert failing(tables=(np.zeros((8, 3), np.float16), np.zeros((8, 3), np.float32))) == types
    assert failing(qkv=np.zeros((2, 3, 35), np.float32)) == configure
    assert failing(tables=(np.zeros((8, 6), np.float32), np.zeros((8, 6), np.float32))) == configure
    assert failing(tables=(np.zeros((8, 3), np.float32), np.zeros((7, 3), np.float32))) == configure
    assert failing(first=np.zeros((2, 1), np.int32)) == configure


# -- loading ------------------------------------------------------------------------------------


def _versioned(path: Path, version: int) -> Path:
    return library(path, f'extern "C" int edged_plugin_version() {{ return {version}; }}')


def test_a_plugin_of_this_version_is_loaded(tmp_path: Path) -> None:
    path = _versioned(tmp_path / "good.so", VERSION)
    load_plugin(path)
    load_plugin(path)


def test_a_plugin_that_cannot_be_used_says_why_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    needed = library(tmp_path / "libnvinfer_of_another_version.so.10", "int x;")
    linked = library(tmp_path / "foreign.so", "extern int x; int *y = &x;", needed)
    needed.unlink()
    cases = {
        tmp_path / "absent.so": "absent.so",
        tmp_path / "text.so": "text.so",
        linked: "libnvinfer_of_another_version.so.10",
        library(tmp_path / "other.so", "int z;"): "no TensorRT plugin of edged",
        _versioned(tmp_path / "newer.so", VERSION + 1): f"version {VERSION + 1}",
        _versioned(tmp_path / "refused.so", 0): "refused",
    }
    for path, part in cases.items():
        with pytest.raises(PluginUnusable) as caught:
            load_plugin(path)
        assert part in caught.value.message
        assert caught.value.hint
        assert caught.value.code == "plugin_unusable"


def test_a_library_that_is_not_there_is_named(nvcc: str, tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/NvInfer.h").touch()
    done = subprocess.run(
        [PLUGIN / "build.sh", "sm_87", tmp_path / "made.so"],
        env={**os.environ, "NVCC": nvcc, "TENSORRT": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    assert "no libnvinfer" in done.stderr
    assert not (tmp_path / "made.so").exists()


LOAD = """
import pathlib, sys
from edged.engine.plugins import load_plugin
from edged.errors import PluginUnusable
for path in sys.argv[1:]:
    try:
        load_plugin(pathlib.Path(path))
        print("loaded")
    except PluginUnusable as error:
        print(error)
"""


def test_what_is_loaded_already_is_told_by_its_content(tmp_path: Path) -> None:
    """A bundle has its own copy of the library, and TensorRT's registry takes no plugin twice."""
    known = registry(tmp_path)
    first = plugin(tmp_path / "first.so", known)
    copy = Path(shutil.copy(first, tmp_path / "copy.so"))
    other = plugin(tmp_path / "other.so", known, build=2)
    newer = plugin(tmp_path / "newer.so", known, version=VERSION + 1)

    def loading(*paths: Path) -> list[str]:
        command = [sys.executable, "-c", LOAD, *map(str, paths)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    assert loading(first, copy, other, other, first) == ["loaded"] * 5
    *rest, told = loading(first, newer)
    assert rest == ["loaded"]
    assert f"version {VERSION + 1}, this edged needs {VERSION}" in told
    _, told = loading(newer, first)
    assert "restart edged" in told, "the one that cannot be used has taken the name"
