"""The plugin's kernel, compiled for the device that is here, against the same layer by numpy."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from gpu_checking import Skip, require
from gpu_checking.machine import nvcc
from gpu_checking.memory import opened

SOURCE = Path(__file__).resolve().parent.parent.parent / "deploy/jetson/plugin/masked_pos_enc.cu"
OPTIONS = ("-std=c++17", "-O3", "-shared", "-Xcompiler", "-fPIC,-fvisibility=hidden")
# (rows, steps, first positions): a step alone, a batch of steps, a prompt, positions that there are not.
CASES = ((1, 1, (40,)), (4, 1, (0, 7, 90, 255)), (2, 48, (0, 60)), (3, 2, (-1, 255, 2**31 - 1)))
HEADS, WIDTH, SLOTS = 12, 64, 256


def masked_pos_enc() -> dict[str, Any]:
    if not SOURCE.exists():
        raise Skip("the plugin's source is not here")
    if not nvcc():
        raise Skip("there is no CUDA compiler (nvcc)")
    device = opened()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "masked_pos_enc.so"
        arch = f"sm_{device.capability[0]}{device.capability[1]}"
        begin = time.monotonic()
        made = subprocess.run(
            [nvcc(), *OPTIONS, f"-arch={arch}", "-o", str(path), str(SOURCE)],
            capture_output=True,
            text=True,
            check=False,
        )
        if "Unsupported gpu architecture" in made.stderr:
            raise Skip(f"this CUDA compiler knows no {arch}")
        require(made.returncode == 0, f"nvcc -arch={arch}: {made.stderr.strip()[-400:]}")
        compiled_s = time.monotonic() - begin
        library = ctypes.CDLL(str(path))
        largest = {
            f"{np.dtype(kind).name}_largest_difference": max(
                _case(device, library, kind, *case) for case in CASES
            )
            for kind in (np.float32, np.float16)
        }
    device.close()
    return {"device": device.name, "arch": arch, "compile_s": round(compiled_s, 1), **largest}


def _case(device: Any, library: Any, kind: Any, rows: int, steps: int, first: tuple[int, ...]) -> float:
    """Runs one call; the largest difference of query, keys and values from numpy's."""
    from tests.masked_pos_enc import Call, expected

    rng = np.random.default_rng(rows)
    angle = np.arange(SLOTS)[:, None] / 10_000.0 ** (np.arange(WIDTH // 2) * 2 / WIDTH)
    tables = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    qkv = rng.normal(0, 1, (rows, steps, 3 * HEADS * WIDTH)).astype(kind)
    keys, values = rng.normal(0, 1, (2, rows, HEADS, SLOTS, WIDTH)).astype(kind)
    begin = np.array(first, np.int32)
    query = np.zeros((rows, HEADS, steps, WIDTH), kind)
    mask = np.zeros((rows, 1, steps, SLOTS), np.float32)
    wanted = expected(qkv, keys, values, begin, tables)

    stream, blocks = device.stream(), []
    arrays = (qkv, keys, values, begin, *tables, query, mask)  # in the order of the structure
    for array in arrays:
        block = device.allocate(array.nbytes)
        stream.upload(block.address, array)
        blocks.append(block)
    half = int(kind is np.float16)
    sizes = (rows, steps, HEADS, WIDTH, SLOTS, SLOTS, half, half)
    call = Call(*(block.address for block in blocks), *sizes)
    code = library.masked_pos_enc(ctypes.byref(call), ctypes.c_void_p(stream.handle))
    require(code == 0, f"the launch failed with code {code}")
    for index in (6, 1, 2, 7):
        stream.download(arrays[index], blocks[index].address)
    stream.synchronize()
    for block in blocks:
        block.free()
    stream.close()
    require(np.array_equal(mask, wanted[3]), "the mask is wrong")
    pairs = zip((query, keys, values), wanted, strict=False)
    largest = max(float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()) for a, b in pairs)
    allowed = 4e-3 if half else 1e-5  # a unit in the last place of numbers up to 5
    require(largest <= allowed, f"{np.dtype(kind).name}: off by {largest}")
    return largest
