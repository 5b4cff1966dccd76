"""Real daemons and commands with a bundle for TensorRT, on stand-ins for the driver and for TensorRT."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from edged import settings
from edged.bundle import Bundle, read_manifest
from edged.bundle_write import write_manifest
from edged.compiler.parts import file_entry
from edged.engine.buffers import Arena
from edged.errors import CudaMissing
from edged.voices.chattts.voice import engine
from tests.cuda import fake
from tests.daemon import Daemon, receive_until, running, send
from tests.plugin_library import plugin, registry
from tests.trt import bindings

HERE = Path(__file__).resolve().parent
SENTENCE = "Hello world. The time is good."
LONG = "good morning time word " * 40
Environment = dict[str, str]


@pytest.fixture(scope="session")
def machine(libcuda: Path) -> Environment:
    """The environment of a machine with a GPU, TensorRT and pycuda."""
    version = bindings.VERSIONS[-1]
    if reason := bindings.unavailable(version):
        pytest.skip(reason)
    found = fake.environment(libcuda)
    more = [str(HERE / "site"), str(bindings.PREPARED / version)]
    found["PYTHONPATH"] = os.pathsep.join([found["PYTHONPATH"], *more])
    return {name: found[name] for name in ("LD_LIBRARY_PATH", "PYTHONPATH")}


def edged(env: Environment, *arguments: object, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "edged", *map(str, arguments)],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stderr if code else done.stdout


@pytest.fixture(scope="session")
def built(machine: Environment, tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "gpu"
    build = ("bundle", "build", "chattts", "--backend", "tensorrt", "--checkpoint", tiny_checkpoint)
    edged(machine, *build, "--positions", 512, "--slots", 2, "--set", "name=gpu", "--out", out)
    return out


def speak(daemon: Daemon) -> int:
    """Bytes of sound."""
    reply = daemon.request({"op": "synthesize", "text": SENTENCE})
    assert reply["event"] == "done", reply
    return len(reply["audio_bytes"])


def test_it_serves_and_stops(built: Path, machine: Environment, tmp_path: Path) -> None:
    left = tmp_path / "left"
    with running(built, env={**machine, "EDGED_TEST_LEFT": str(left)}) as daemon:
        assert daemon.request({"op": "status"})["remark"] == ""
        assert speak(daemon) > 10_000
        with daemon.socket() as socket:
            for name in ("first", "second"):
                send(socket, op="synthesize", id=name, text=SENTENCE, reply="events")
            ended = [receive_until(socket, "done", "failed")[-1] for _ in range(2)]
            assert {(event["id"], event["event"]) for event in ended} == {
                ("first", "done"),
                ("second", "done"),
            }
        with daemon.socket() as socket:
            send(socket, op="synthesize", id="long", text=LONG, reply="events", stream=True)
            receive_until(socket, "audio")
            send(socket, op="cancel", target="long")
            ended = receive_until(socket, "cancelled", "done", "failed")[-1]
            assert ended["event"] == "cancelled", ended
        assert speak(daemon) > 10_000, "the next one speaks"
        table = edged({}, "--endpoint", daemon.endpoint, "status", "--memory")
        assert daemon.stop() == 0
        assert not [line for line in daemon.log.splitlines() if "code=" in line]
        assert "fake device (host memory) (compute capability 8.7)" in daemon.log
    rows = [line.split() for line in table.splitlines() if line.endswith(" device")]
    assert {"gpu.gpt.weights", "gpu.gpt.past_k.0..1", "gpu.vocoder.mirror"} <= {row[0] for row in rows}
    assert json.loads(left.read_text()) == {}


def test_without_its_driver_the_fallback_speaks(built: Path, machine: Environment, tone_bundle: Path) -> None:
    engine = {"fallback": str(tone_bundle)}
    for env, remark in ((machine, ""), ({}, "gpu cannot be used, tone speaks instead: cuda_missing")):
        with running(built, env=env, engine=engine) as daemon:
            assert daemon.request({"op": "status"})["remark"] == remark
            assert ("code=cuda_missing" in daemon.log) == bool(remark)
            assert speak(daemon)


def with_plugin(built: Path, out: Path, library: Path) -> Path:
    """A copy of the bundle as another version, which carries a plugin."""
    shutil.copytree(built, out)
    entry = shutil.copy(library, out / "engines/plugin.so")
    manifest = read_manifest(out)
    assert manifest.tensorrt is not None
    data = (*manifest.data, file_entry(out, "plugin", "engines/plugin.so"))
    record = msgspec.structs.replace(manifest.tensorrt, plugin="plugin")
    changed = msgspec.structs.replace(manifest, version=out.name, data=data, tensorrt=record)
    write_manifest(out, changed)
    assert Path(entry).is_file()
    return out


def test_a_version_with_a_plugin_is_exchanged_for_another(
    built: Path, machine: Environment, tmp_path: Path
) -> None:
    """The process has loaded a plugin already, and TensorRT's registry takes no other."""
    known = registry(tmp_path)
    first, other = (plugin(tmp_path / f"{n}.so", known, build=n) for n in (1, 2))
    one, same, newer = (
        with_plugin(built, tmp_path / name, library)
        for name, library in (("one", first), ("same", first), ("newer", other))
    )
    with running(one, env=machine) as daemon:
        for version in (same, newer):
            daemon.configure(voices={"bundles": [str(version)]})
            reply = daemon.request({"op": "reload"})
            assert reply["event"] == "reload_reply", reply
            assert speak(daemon)
        assert "another build of the plugin" in daemon.log


def test_a_former_voice_that_cannot_be_freed_is_told_and_left(built: Path, machine: Environment) -> None:
    env = {**machine, "FAKE_CUDA_FAIL": "cuGraphExecDestroy:1:700"}
    with running(built, env=env) as daemon:
        for contexts in (1, 2):
            assert speak(daemon)
            daemon.configure(engine={"contexts": contexts})
            assert daemon.request({"op": "reload"})["event"] == "reload_reply"
        assert speak(daemon)
        assert "not all of its memory could be freed" in daemon.log
        assert daemon.process.poll() is None


def test_a_gpu_that_has_failed_ends_the_process_though_another_voice_speaks(
    built: Path, machine: Environment, tone_bundle: Path
) -> None:
    env = {**machine, "FAKE_CUDA_FAIL": "cuEventSynchronize:400:700"}
    with running(built, tone_bundle, env=env) as daemon, daemon.socket() as socket:
        for number in range(60):
            voice = ("neutral", "tone")[number % 2]
            send(socket, op="synthesize", id=str(number), text=SENTENCE, voice=voice, reply="final")
            if receive_until(socket, "done", "failed", "cancelled")[-1].get("code") == "cuda":
                break
        for number in range(60, 80):
            voice = ("neutral", "tone")[number % 2]
            send(socket, op="synthesize", id=str(number), text=SENTENCE, voice=voice, reply="final")
        assert daemon.process.wait(30) == 1


def test_a_version_is_tried_before_it_is_used(built: Path, machine: Environment, tmp_path: Path) -> None:
    env = {**machine, "EDGED_BUNDLES": str(tmp_path / "store")}
    edged(env, "bundle", "install", built)
    edged(env, "bundle", "activate", "gpu", "--no-reload")
    listed = json.loads(edged(env, "bundle", "list", "--json"))["bundles"]
    assert ("current", "tensorrt", "ok") in {(e["role"], e["backend"], e["state"]) for e in listed}
    told = edged(env, "bundle", "verify", "gpu")
    assert "ok      min_hidden_snr_db" in told


def test_a_version_that_is_built_anew_uses_the_timings_of_its_name(
    built: Path, machine: Environment, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    env = {**machine, "EDGED_BUNDLES": str(store)}
    edged(env, "bundle", "install", built)
    edged(env, "bundle", "activate", "gpu", "--no-reload", "--no-trial")
    build = ("bundle", "build", "chattts", "--backend", "tensorrt", "--checkpoint", tiny_checkpoint)
    told = edged(env, *build, "--positions", 256, "--slots", 1, "--set", "name=gpu")
    assert "use it with: edged bundle activate gpu-1-" in told
    assert [path.name for path in store.glob("*.timings")] == ["gpu.timings"]
    assert not list(store.glob(".*.timings"))


def test_what_needs_an_engine_asks_for_the_gpu_first(
    built: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    """On a machine without one, where TensorRT would end the process."""
    with pytest.raises(CudaMissing):
        engine(Bundle.load(built), "vocoder", settings.Engine(), Arena())
    told = edged({}, "bundle", "verify", built, "--against", tiny_checkpoint, code=1)
    assert "plans cannot be read back" in told
    (tmp_path / "silence.wav").write_bytes(b"")
    recording = ("--audio", tmp_path / "silence.wav", "--text", "so")
    assert "use one for onnxruntime" in edged({}, "voice", "enroll", "--bundle", built, *recording, code=1)
