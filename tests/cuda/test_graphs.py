"""CUDA graphs: recorded once for each key, then launched, and done without where there are none."""

from __future__ import annotations

import logging

import pytest

from edged.engine.cuda import Device
from edged.engine.cuda_graph import MOST, StepGraphs
from edged.errors import CudaError, EngineError
from tests.cuda.fake import Fake

LINE = "steps run without CUDA graphs"


class Step:
    """Copies its page-locked input to its output by way of the device."""

    def __init__(self, *, graphs: bool = True) -> None:
        self.device = Device()
        self.device.use()
        self.stream = self.device.stream()
        self.input, self.output = self.device.pin(8), self.device.pin(8)
        self.block = self.device.allocate(8)
        self.graphs = StepGraphs(self.stream, graphs)
        self.works = 0

    def work(self) -> None:
        self.works += 1
        self.stream.upload(self.block.address, self.input.array)
        self.stream.download(self.output.array, self.block.address)

    def run(self, value: int, key: object = "step") -> None:
        """One step; its result is that of this value."""
        self.input.array[:] = value
        self.graphs.run(key, self.work)
        self.stream.synchronize()
        assert (self.output.array == value).all()

    def close(self) -> None:
        self.graphs.close()
        self.device.close()


def test_recorded_at_the_second_time_and_launched_later(gpu: Fake) -> None:
    step = Step()
    for value in range(1, 8):
        step.run(value)
    assert step.works == 2
    calls = {
        name: gpu.calls(name) for name in ("cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphLaunch")
    }
    assert calls == {"cuStreamBeginCapture_v2": 1, "cuStreamEndCapture": 1, "cuGraphLaunch": 6}
    assert gpu.calls("cuGraphInstantiateWithFlags") == 1
    assert gpu.live("graph") == 1
    step.close()
    assert gpu.left() == {}


def test_once_for_each_key(gpu: Fake) -> None:
    step = Step()
    for value in range(1, 5):
        for key in (1, 2, 3):
            step.run(value, key)
    assert gpu.calls("cuGraphInstantiateWithFlags") == 3
    assert step.works == 6
    step.graphs.close()
    step.run(9, 1)
    assert step.works == 7
    assert gpu.live("graph") == 0


def test_forgotten_graphs_are_recorded_anew(gpu: Fake) -> None:
    step = Step()
    for value in (1, 2, 3):
        step.run(value)
    step.graphs.forget()
    assert gpu.live("graph") == step.graphs.recorded == 0
    for value in (4, 5, 6):
        step.run(value)
    assert step.works == 4
    assert gpu.calls("cuGraphInstantiateWithFlags") == 2


def test_keys_without_end_take_no_memory_without_end(gpu: Fake) -> None:
    step = Step()
    for value in range(2 * MOST):
        for _ in range(3):
            step.run(value % 200, value)
    assert gpu.live("graph") == MOST


def test_a_machine_without_graphs(
    gpu: Fake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FAKE_CUDA_GRAPHS", "0")
    step = Step()
    with caplog.at_level(logging.INFO):
        for value in range(1, 8):
            step.run(value, value % 2)
    assert step.works == 7
    assert [record.levelname for record in caplog.records if LINE in record.getMessage()] == ["INFO"]
    assert "CUDA_ERROR_NOT_SUPPORTED" in caplog.text
    step.close()
    assert gpu.left() == {}


@pytest.mark.parametrize("call", ["cuStreamEndCapture", "cuGraphInstantiateWithFlags"])
def test_a_recording_that_fails(gpu: Fake, caplog: pytest.LogCaptureFixture, call: str) -> None:
    step = Step()
    step.run(1)
    gpu.fail(call, 901)
    with caplog.at_level(logging.INFO):
        if call == "cuStreamEndCapture":  # the stand-in goes on recording then, as no driver does
            step.graphs.run("step", step.work)
        else:
            for value in range(2, 6):
                step.run(value)
    assert caplog.text.count(LINE) == 1
    assert gpu.calls("cuGraphLaunch") == 0


def test_work_that_waits_cannot_be_recorded(gpu: Fake, caplog: pytest.LogCaptureFixture) -> None:
    step = Step()
    event = step.device.event()

    def work() -> None:
        step.work()
        event.record(step.stream)
        event.wait()

    with caplog.at_level(logging.INFO):
        for value in range(1, 5):
            step.input.array[:] = value
            step.graphs.run("waits", work)
            assert (step.output.array == value).all()
    assert caplog.text.count(LINE) == 1
    assert gpu.live("graph") == 0


def test_a_fault_of_the_work_is_not_hidden(gpu: Fake) -> None:
    step = Step()
    step.run(1)

    def broken() -> None:
        raise EngineError("the engine did not run")

    with pytest.raises(EngineError, match="did not run"):
        step.graphs.run("step", broken)
    step.run(3)
    assert gpu.live("graph") == 0


def test_a_launch_that_fails(gpu: Fake) -> None:
    step = Step()
    for value in (1, 2, 3):
        step.run(value)
    gpu.fail("cuGraphLaunch", 700)
    with pytest.raises(CudaError, match=r"cuGraphLaunch.*ILLEGAL_ADDRESS"):
        step.run(4)


def test_switched_off(gpu: Fake) -> None:
    step = Step(graphs=False)
    for value in range(5):
        step.run(value)
    assert step.works == 5
    assert gpu.calls("cuStreamBeginCapture_v2") == 0
