"""A plan's runner against ONNX Runtime, on a stand-in for the engine that works on raw addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged.compiler import trt
from edged.compiler.chattts import agreement, plans
from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.options import check
from edged.compiler.parts import silent
from edged.compiler.runners import OrtRunner, PlanRunner
from edged.errors import EngineError


class Memory:
    """A block of "device" memory, or the stream that copies into and out of it."""

    handle = 7

    def __init__(self, nbytes: int = 0) -> None:
        self.nbytes = nbytes
        self._kept = ctypes.create_string_buffer(nbytes)
        self.address = ctypes.addressof(self._kept)
        self.freed = False

    def upload(self, target: int, source: Any) -> None:
        ctypes.memmove(target, source.ctypes.data, source.nbytes)

    def download(self, target: Any, source: int) -> None:
        ctypes.memmove(target.ctypes.data, source, target.nbytes)

    def synchronize(self) -> None: ...

    def close(self) -> None:
        self.freed = True

    free = close


class Device:
    def __init__(self) -> None:
        self.made: list[Memory] = []

    def use(self) -> None: ...

    def allocate(self, nbytes: int) -> Any:
        self.made.append(Memory(nbytes))
        return self.made[-1]

    def stream(self) -> Any:
        return self.allocate(0)


class Engine:
    """Engine and context in one; what TensorRT would refuse is False."""

    def __init__(self, network: plans.Network, profiles: Any) -> None:
        self.run = OrtRunner(network.path, network.interface, threads=1)
        self.profiles = profiles
        self.profile = -1
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.addresses: dict[str, int] = {}
        self.used: list[int] = []
        self.refuses = ""

    def create_execution_context(self) -> Any:
        return None if self.refuses == "context" else self

    def set_optimization_profile_async(self, index: int, stream: int) -> bool:
        self.profile = index
        self.used.append(index)
        return stream == Memory.handle and self.refuses != "profile"

    def set_input_shape(self, name: str, shape: Any) -> bool:
        self.shapes[name] = tuple(shape)
        least, _, most = self.profiles[self.profile].get(name, (shape, shape, shape))
        return all(a <= n <= b for n, a, b in zip(shape, least, most, strict=True))

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.addresses[name] = address
        return self.refuses != name

    def get_tensor_shape(self, name: str) -> Any:
        shape = self.run.outputs[name].shape
        if name == "samples":  # two frames a step, and those before
            return (1, (2 * self.shapes["hidden"][1] + 1) * 256)
        return (1, *shape[1:])

    def execute_async_v3(self, stream: int) -> bool:
        feeds = {}
        for name, spec in self.run.inputs.items():
            value = np.empty(self.shapes[name], spec.dtype)
            ctypes.memmove(value.ctypes.data, self.addresses[name], value.nbytes)
            feeds[name] = value
        for name, value in self.run(feeds).items():
            assert value.shape == tuple(self.get_tensor_shape(name))
            ctypes.memmove(self.addresses[name], value.ctypes.data, value.nbytes)
        return self.refuses != "run"


@pytest.fixture(scope="module")
def networks(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chosen = check("", (), 128, 2, "", (), False, "tensorrt")
    with Checkpoint.open(tiny_checkpoint) as source:
        yield source, plans.networks(source, tmp_path_factory.mktemp("networks"), chosen, silent)


def opened(network: plans.Network, refuses: str = "") -> tuple[PlanRunner, Engine, Device]:
    profiles = [trt.profile(network.path, dims) for dims in network.profiles]
    engine, device = Engine(network, profiles), Device()
    engine.refuses = refuses
    return PlanRunner(engine, network.interface, profiles, device), engine, device  # type: ignore[arg-type]


def test_a_plan_gives_what_its_network_gives(networks: Any) -> None:
    source, made = networks
    (gpt, stepping, device), (vocoder, _, _) = (opened(network) for network in made)
    plain = agreement.Build(*(OrtRunner(n.path, n.interface, threads=1) for n in made))
    prompts = [range(10, 70)]  # more than one piece
    found = agreement.compare(plain, agreement.Build(gpt, vocoder), prompts, plans.code_head(source), 48)
    assert (found["max_logit_error"], found["min_token_agreement"]) == (0.0, 1.0)
    assert found["min_waveform_snr_db"] == 200.0
    assert stepping.used[:3] == [0, 0, 1]  # two pieces of the prompt, then steps
    places = stepping.addresses
    assert all(places[n] == places[n.replace("present", "past")] for n in places if n.startswith("present_"))
    gpt.close()
    assert all(memory.freed for memory in device.made)


@pytest.mark.parametrize("refuses", ["context", "profile", "ids", "run"])
def test_what_tensorrt_refuses_is_an_error(networks: Any, refuses: str) -> None:
    def speak() -> None:
        runner, _, _ = opened(networks[1][0], refuses)
        agreement.Line(runner, 0).prompt([1, 2, 3], 48)

    with pytest.raises(EngineError):
        speak()


def test_a_shape_of_no_profile_is_an_error(networks: Any) -> None:
    runner, _, _ = opened(networks[1][0])
    with pytest.raises(EngineError, match="no optimisation profile"):
        agreement.Line(runner, 0).prompt(range(49), 49)
