"""The TensorRT backend under a real voice: the same sounds, and nothing allocated."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from edged import settings
from edged.bundle import Bundle
from edged.engine import cuda
from edged.errors import EngineError
from edged.job import Params
from edged.text.prepare import prepare
from tests.cuda.fake import Fake
from tests.trt import bundles
from tests.trt.voices import TEXT, speak, standins, synth_of, voices


def test_it_speaks_as_onnx_runtime_does(onnx: Bundle, tmp_path: Path, version: str, gpu: Fake) -> None:
    """A prompt in pieces, 300 steps, rows that come and go, a cancelled one: equal to the sample."""
    world = standins(version)
    plans = bundles.plan_bundle(tmp_path / "plans", onnx)
    long_text = "good morning time word " * 12
    wanted = [(0, long_text, 1), (1, TEXT, 2), (0, TEXT, 3), (1, "Thank you.", 4)]
    results = []
    for bundle in (onnx, plans):
        with voices(bundle) as (opened, _):
            spoken = speak(opened, [(0, TEXT, 9)], steps=300)
            synth = synth_of(opened)
            early = synth.open(next(iter(prepare(TEXT, opened[0].frontend))), Params(seed=5))
            for _ in range(3):
                synth.step([early])
            synth.close(early)
            results.append([*spoken, *speak(opened, wanted)])
    ours, theirs = results[1], results[0]
    assert sum(map(len, theirs[0])) > 300 * 500
    for one, other in zip(ours, theirs, strict=True):
        assert [len(piece) for piece in one] == [len(piece) for piece in other]
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other))
    gc.collect()
    assert (world.engines, world.contexts) == (0, 0)
    assert gpu.left() == {}


def test_serving_allocates_nothing(onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake) -> None:
    world = standins(newest)
    with voices(bundles.plan_bundle(tmp_path / "voice", onnx)) as (opened, _):
        assert (gpu.live("device"), gpu.live("pinned")) == (3, 1), "the arena, and two engines' weights"
        kinds = ("device", "pinned", "stream", "event", "context", "graph")
        before = {kind: gpu.total(kind) for kind in kinds}
        graphs = gpu.live("graph")
        assert graphs == bundles.SLOTS, "a step of one row, of two, of three"
        for job in range(0, 102, 3):
            speak(opened, [(0, "Thank you.", job), (1, TEXT, job + 1), (1, "Thank you.", job + 2)])
        assert {kind: gpu.total(kind) for kind in before} == before
        assert (gpu.live("graph"), gpu.calls("cuGraphExecDestroy")) == (graphs, 0)
        world.asks = 4096
        with pytest.raises(EngineError, match="while serving"):
            speak(opened, [(0, TEXT, 1)])
        world.asks = 0
    gc.collect()
    assert gpu.left() == {}


def test_steps_are_recorded_and_launched(onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake) -> None:
    standins(newest)
    plans = bundles.plan_bundle(tmp_path / "voice", onnx)
    results = []
    for recorded in (True, False):
        launched = gpu.calls("cuGraphLaunch")
        with voices(plans, settings.Engine(threads=1, cuda_graphs=recorded)) as (opened, _):
            results.append(speak(opened, [(0, TEXT, 1)], steps=100)[0])
        launched = gpu.calls("cuGraphLaunch") - launched
        assert launched > 90 if recorded else launched == 0
    np.testing.assert_array_equal(*[np.concatenate(pieces) for pieces in results])


@pytest.mark.parametrize(("contexts", "graphs"), [(1, 0), (2, 1)])
def test_with_fewer_contexts_some_steps_run_plainly_and_nothing_is_recorded_later(
    onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake, contexts: int, graphs: int
) -> None:
    standins(newest)
    wanted = [(0, TEXT, 1), (1, TEXT, 2), (0, TEXT, 3)]
    plans, spoken = bundles.plan_bundle(tmp_path / "voice", onnx), []
    for config in (settings.Engine(threads=1, contexts=contexts), settings.Engine(threads=1)):
        with voices(plans, config) as (opened, _):
            there, made = gpu.live("graph"), gpu.total("graph")
            assert there == (graphs if config.contexts else bundles.SLOTS)
            spoken.append([np.concatenate(pieces) for pieces in speak(opened, wanted, steps=60)])
            assert (gpu.live("graph"), gpu.total("graph")) == (there, made)
    for one, other in zip(*spoken, strict=True):
        np.testing.assert_array_equal(one, other)


def test_contexts_are_as_many_as_wanted_and_as_fit(
    onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = standins(newest)
    plans = bundles.plan_bundle(tmp_path / "voice", onnx)
    for wanted, made in ((0, 7), (1, 3), (5, 11)):  # a plan of two profiles and one of one; three slots
        with voices(plans, settings.Engine(threads=1, contexts=wanted)):
            assert world.contexts == made
        gc.collect()  # the stand-ins' callbacks hold them
    world.weights = (1 << 30) - (32 << 20)  # two of them leave what is to be spared
    with voices(plans, settings.Engine(threads=1, contexts=5)) as (opened, _):
        assert world.contexts == 3
        assert speak(opened, [(0, TEXT, 1)])[0]
    gc.collect()
    monkeypatch.setenv("FAKE_CUDA_INTEGRATED", "1")  # what the kernel would give back is room, too
    monkeypatch.setattr(cuda, "available_mb", lambda: 1_000.0)
    with voices(plans, settings.Engine(threads=1, contexts=5)):
        assert world.contexts > 3


def test_what_stays_on_the_device_is_not_shown(onnx: Bundle, tmp_path: Path, newest: str, gpu: Fake) -> None:
    standins(newest)
    with voices(bundles.plan_bundle(tmp_path / "voice", onnx)) as (opened, arena):
        network = synth_of(opened)._generator.engine
        assert {"hidden", "past_k.0", "present_v.1"} <= network.resident
        assert network.bind("hidden", (1, 64)).size == 0
        with pytest.raises(EngineError, match="stays on the device"):
            network.row("hidden", 0)
        names = {row.name for row in arena.plan() if row.kind == "device"}
        assert {"chattts.gpt.past_k.0", "chattts.gpt.activations", "chattts.vocoder.hidden"} <= names
        assert "chattts.gpt.present_k.0" not in names, "it shares memory"
