"""A bundle for TensorRT on a machine that cannot run it: real daemons, with a fallback and without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from edged import errors
from edged.bundle import Bundle, read_manifest
from edged.bundle_write import write_manifest
from edged.engine import preflight
from edged.engine.buffers import Arena
from edged.engine.plan import device_row
from edged.engines import Engines, Generation
from edged.footprint import Footprint
from edged.settings import Engine, Settings, VoiceDefaults, Voices
from edged.voices import catalog, choice, load
from edged.voices.demand import demand
from tests import bundles
from tests.daemon import running
from tests.drivers import driver
from tests.notify import heard, manager

ROOT = Path(__file__).resolve().parent.parent
INSTEAD = "orin cannot be used, tone speaks instead"
REMARK = f"{INSTEAD}: cuda_missing"
SENTENCE = "Pump four has stopped."


def _driver() -> bool:
    try:
        preflight.Driver().start()
    except errors.GpuUnusable:
        return False
    return True


pytestmark = pytest.mark.skipif(_driver(), reason="this machine has a GPU; these tests are about one without")


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A bundle "orin" for TensorRT, with a voice "ada"."""
    out = bundles.for_tensorrt(bundles.tone(), tmp_path / "orin")
    manifest = read_manifest(out)
    (voice,) = manifest.voices
    voices = (msgspec.structs.replace(voice, name="ada"),)
    write_manifest(out, msgspec.structs.replace(manifest, name="orin", voices=voices))
    return out


def serve(
    folder: Path, env: Mapping[str, str] | None = None, **groups: Any
) -> subprocess.CompletedProcess[str]:
    """A daemon that must end by itself."""
    config = folder / "serve.yaml"
    listen = {"endpoint": f"ipc://{folder}/s"}
    config.write_text(yaml.safe_dump({"audio": {"enabled": False}, "listen": listen, **groups}))
    return subprocess.run(
        [sys.executable, "-m", "edged", "serve", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **(env or {})},
    )


def test_without_a_fallback_it_does_not_become_ready(planned: Path, tmp_path: Path) -> None:
    done = serve(tmp_path, voices={"bundles": [str(planned)]})
    assert done.returncode == 1
    assert "cannot start: libcuda.so.1 cannot be loaded" in done.stderr
    assert "code=cuda_missing" in done.stderr
    assert "Traceback" not in done.stderr


def test_with_a_fallback_it_speaks_and_says_so_everywhere(planned: Path, tone_bundle: Path) -> None:
    """The settings may name the voice that is absent; a job that does gets the error it always got."""
    with (
        manager(10.0) as (listener, prefix),
        running(
            planned,
            prefix=prefix,
            engine={"fallback": str(tone_bundle)},
            voices={"default": "ada", "defaults": {"ada": {"speed": 1.2}}},
        ) as daemon,
    ):
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        assert (
            daemon.request({"op": "synthesize", "text": SENTENCE, "voice": "ada"})["code"] == "unknown_voice"
        )
        assert [v["name"] for v in daemon.request({"op": "voices"})["voices"] if v["default"]] == ["tone"]
        assert f"STATUS=ready: tone ({REMARK})" in "\n".join(heard(listener, 0.2))
        assert daemon.request({"op": "status"})["remark"] == REMARK
        command = [sys.executable, "-m", "edged", "--endpoint", daemon.endpoint, "status"]
        assert (
            REMARK in subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        )
        [line] = [line for line in daemon.log.splitlines() if "(engine.fallback) speaks instead" in line]
        assert " warn " in line
        assert "code=cuda_missing" in line
        assert errors.CudaMissing.default_hint in line


def test_a_reload_leaves_it_with_the_fallback_until_that_is_gone(planned: Path, tone_bundle: Path) -> None:
    with running(planned, engine={"fallback": str(tone_bundle)}) as daemon:
        daemon.configure(audio={"volume": 0.5})
        reply = daemon.request({"op": "reload"})
        assert (reply["changed"], reply["loaded"]) == (["audio.volume"], [])
        daemon.configure(engine={"fallback": ""})
        assert daemon.request({"op": "reload"})["code"] == "cuda_missing"
        assert daemon.request({"op": "status"})["remark"] == REMARK
        daemon.configure(voices={"bundles": [str(tone_bundle)]})
        assert daemon.request({"op": "reload"})["event"] == "reload_reply"
        assert daemon.request({"op": "status"})["remark"] == ""


def test_a_running_voice_is_not_given_up_for_the_fallback(planned: Path, tone_bundle: Path) -> None:
    with running(tone_bundle, engine={"fallback": str(tone_bundle)}) as daemon:
        daemon.configure(voices={"bundles": [str(planned)]})
        assert daemon.request({"op": "reload"})["code"] == "cuda_missing"
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"


@pytest.mark.parametrize("name", ["absent", "itself"])
def test_a_fallback_that_is_none_is_told(planned: Path, tmp_path: Path, name: str) -> None:
    named = str(planned) if name == "itself" else name
    done = serve(tmp_path, voices={"bundles": [str(planned)]}, engine={"fallback": named})
    assert done.returncode == 1
    assert "engine.fallback" in done.stderr
    assert "cannot start: libcuda.so.1" in done.stderr


def test_a_default_voice_that_is_nowhere_keeps_it_from_starting(
    planned: Path, tone_bundle: Path, tmp_path: Path
) -> None:
    voices = {"bundles": [str(planned)], "default": "bob"}
    done = serve(tmp_path, voices=voices, engine={"fallback": str(tone_bundle)})
    assert done.returncode == 1
    assert "voices.default 'bob' is in none of the loaded bundles" in done.stderr


# -- with a driver that is there ----------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment of a machine with such a driver, and with TensorRT as far as its metadata goes."""

    def make(**macros: object) -> dict[str, str]:
        site = tmp_path / "site"
        info = site / "tensorrt-10.3.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorrt\nVersion: 10.3.0\n")
        driver(tmp_path, **macros).rename(tmp_path / "libcuda.so.1")
        path = os.pathsep.join([str(ROOT), str(site)])
        return {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": path}

    return make


def test_a_gpu_of_another_kind_is_a_reason(
    planned: Path, tone_bundle: Path, machine: Callable[..., dict[str, str]]
) -> None:
    with running(planned, env=machine(MINOR=6), engine={"fallback": str(tone_bundle)}) as daemon:
        assert daemon.request({"op": "status"})["remark"] == f"{INSTEAD}: capability_mismatch"
        assert "code=capability_mismatch" in daemon.log


def test_an_engine_that_cannot_be_loaded_though_everything_fits_is_one(
    planned: Path, tone_bundle: Path, machine: Callable[..., dict[str, str]]
) -> None:
    with running(planned, env=machine(), engine={"fallback": str(tone_bundle)}) as daemon:
        assert "Fake Orin (compute capability 8.7)" in daemon.log
        [line] = [line for line in daemon.log.splitlines() if "code=bundle_inaccurate" in line]
        assert " warn " in line, "nobody has measured it"
        assert daemon.request({"op": "status"})["remark"].startswith(f"{INSTEAD}: ")
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"


def test_other_settings_are_taken_while_the_configured_bundle_is_broken(
    planned: Path, tone_bundle: Path, machine: Callable[..., dict[str, str]]
) -> None:
    """Whatever the reason was at the start; and the real voice again once it can be used."""
    plan = next((planned / "engines").iterdir())
    plan.write_bytes(plan.read_bytes()[:-1])
    env = machine()
    with running(planned, env=env, engine={"fallback": str(tone_bundle)}) as daemon:
        told = [line for line in daemon.log.splitlines() if "code=bundle_file_truncated" in line]
        assert len(told) == 1
        assert " error " in told[0], "this is never expected"
        daemon.configure(audio={"volume": 0.5})
        reply = daemon.request({"op": "reload"})
        assert (reply["changed"], reply["loaded"]) == (["audio.volume"], [])
        daemon.configure(engine={"threads": 1})
        reply = daemon.request({"op": "reload"})
        assert (reply["changed"], reply["loaded"]) == (["engine.threads"], ["tone"])
        assert daemon.request({"op": "status"})["remark"].startswith(f"{INSTEAD}: ")
        assert daemon.log.count("code=bundle_file_truncated") == 3
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        daemon.configure(engine={"fallback": "absent"})
        assert daemon.request({"op": "reload"})["code"] == "bundle_missing"
        daemon.configure(engine={"fallback": ""})
        assert daemon.request({"op": "reload"})["code"] == "bundle_file_truncated"
        daemon.configure(voices={"bundles": [str(tone_bundle)]})
        assert daemon.request({"op": "reload"})["event"] == "reload_reply"
        assert daemon.request({"op": "status"})["remark"] == ""


def test_a_driver_that_takes_the_process_down_is_one_at_the_third_start(
    planned: Path, tone_bundle: Path, tmp_path: Path, machine: Callable[..., dict[str, str]]
) -> None:
    env = {**machine(CRASH=1), "STATE_DIRECTORY": str(tmp_path)}
    groups = {"voices": {"bundles": [str(planned)]}, "engine": {"fallback": str(tone_bundle)}}
    for _ in range(2):
        assert serve(tmp_path, env, **groups).returncode == -signal.SIGABRT
    with running(planned, env=env, engine=groups["engine"]) as daemon:
        assert daemon.request({"op": "status"})["remark"] == f"{INSTEAD}: bundle_trial_failed"
        assert "code=bundle_trial_failed" in daemon.log


def test_what_the_settings_say_wrongly_is_no_reason_for_it(
    planned: Path, tone_bundle: Path, tmp_path: Path
) -> None:
    done = serve(
        tmp_path,
        voices={"bundles": [str(planned), str(planned)]},
        engine={"fallback": str(tone_bundle)},
    )
    assert done.returncode == 2
    assert "two bundles have the name 'orin'" in done.stderr
    assert "speaks instead" not in done.stderr


def test_the_settings_may_name_its_voices_at_any_time(tone_bundle: Path, slow_bundle: Path) -> None:
    """They must not have to be changed when it stands in."""
    cards = {card.name: card for card in load.cards(Bundle.load(slow_bundle))}
    assert list(cards) != ["tone"]

    def check(fallback: Path | str, name: str) -> None:
        voices = Voices(default=name, defaults={name: VoiceDefaults(speed=1.2)})
        catalog.check_choices(Settings(voices=voices, engine=Engine(fallback=str(fallback))), cards)

    check(tone_bundle, "tone")
    for fallback, name in (("", "tone"), (tone_bundle, "nobody"), (tone_bundle / "absent", "tone")):
        with pytest.raises(errors.ConfigError, match=name):
            check(fallback, name)


# -- which bundles ------------------------------------------------------------------------------


def test_it_takes_the_place_of_what_it_replaces(planned: Path, tone_bundle: Path, slow_bundle: Path) -> None:
    """The first voice of all is the default one."""

    def names(*wanted: Path) -> list[str]:
        voices = Voices(bundles=[str(path) for path in wanted])
        settings = Settings(voices=voices, engine=Engine(fallback=str(tone_bundle)))
        found = choice.fallback(settings, choice.configured(settings))
        return [source.path.name for source in found.sources] if found else []

    tone, slow = tone_bundle.name, slow_bundle.name
    assert names(planned, slow_bundle) == [tone, slow]
    assert names(slow_bundle, planned) == [slow, tone]
    assert names(tone_bundle, slow_bundle, planned) == [tone, slow], "it is there already"
    assert names(slow_bundle) == [], "nothing needs it"
    other = planned.parent / "link"
    other.symlink_to(tone_bundle.parent)
    found = names(other / tone, planned)
    assert found == [tone], "it is there already, by another path"


def test_what_a_bundle_takes_on_the_gpu_is_in_the_plan_before_it_is_loaded(planned: Path) -> None:
    rows = demand(Bundle.load(planned), Engine())
    assert [(row.name, row.kind, row.megabytes) for row in rows] == [("orin.device", "device", 400.0)]


def test_what_engines_have_on_the_gpu_is_measured_with_the_process() -> None:
    arena = Arena()
    arena.note(device_row("orin", 400.0))
    arena.weights("tone", 1_000_000)

    class Loaded(Generation):
        def __init__(self) -> None:
            self.arena = arena

    engines = Engines(Arena())
    assert (engines.device_mb, engines.remark) == (0, "")
    engines.add(Loaded())
    engines.add(Loaded())
    assert engines.device_mb == 800.0, "a reload has both for a while"
    measured = Footprint(lambda: engines.device_mb).measure()
    assert measured.gpu_mb == 800.0
    assert measured.mb == measured.process_mb + 800.0
