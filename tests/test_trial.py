"""The trial of a bundle in a process of its own: what it lets through and what it refuses."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from edged import errors
from edged.bundle_write import write_manifest
from edged.compiler import build
from edged.manifest import Manifest, read_manifest
from edged.settings import Service, Settings, Voices
from edged.voices import trial


@pytest.fixture
def copy(tone_bundle: Path, tmp_path: Path) -> Path:
    shutil.copytree(tone_bundle, tmp_path / "tone")
    return tmp_path / "tone"


def change(path: Path, **fields: object) -> Manifest:
    manifest = msgspec.structs.replace(read_manifest(path), **fields)
    write_manifest(path, manifest)
    return manifest


def test_a_good_bundle_is_heard(tone_bundle: Path) -> None:
    outcome = trial.run(tone_bundle, Settings())
    assert outcome.voices == ("tone",)
    assert outcome.peak_mb > 20
    assert outcome.seconds > 0


def test_one_that_sounds_otherwise_than_it_did_is_refused(copy: Path) -> None:
    golden = read_manifest(copy).golden
    assert golden is not None
    change(copy, golden=msgspec.structs.replace(golden, samples=golden.samples * 2))
    with pytest.raises(errors.EngineError, match="samples instead of"):
        trial.run(copy, Settings())


def test_one_without_a_golden_utterance_must_speak(copy: Path) -> None:
    change(copy, golden=None)
    assert trial.run(copy, Settings()).voices == ("tone",)


def test_one_that_lacks_a_voice_of_the_configuration_is_refused(copy: Path) -> None:
    voices = Voices(bundles=["tone"], directory=str(copy.parent), default="tone")
    assert trial.run(copy, Settings(voices=voices)).voices == ("tone",)
    change(copy, voices=tuple(msgspec.structs.replace(v, name="other") for v in read_manifest(copy).voices))
    with pytest.raises(errors.ConfigError, match="'tone' is in none of the loaded bundles"):
        trial.run(copy, Settings(voices=voices))
    elsewhere = Voices(bundles=["violin"], default="violin")
    assert trial.run(copy, Settings(voices=elsewhere)).voices == ("other",), "it is not for this daemon"


def test_a_changed_file_is_refused(copy: Path) -> None:
    engine = next((copy / "engines").iterdir())
    engine.write_bytes(engine.read_bytes()[:-1] + b"x")
    with pytest.raises(errors.BundleHashMismatch):
        trial.run(copy, Settings())


def test_a_network_that_cannot_be_loaded_is_refused(copy: Path) -> None:
    manifest = read_manifest(copy)
    (entry,) = manifest.engines
    file = copy / entry.file
    file.write_bytes(b"\x08\x09" * (entry.bytes // 2) + b"\0" * (entry.bytes % 2))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    change(copy, engines=(msgspec.structs.replace(entry, sha256=digest),))
    with pytest.raises(errors.EngineError):
        trial.run(copy, Settings())


def test_the_memory_is_that_of_all_voices_together(tone_bundle: Path, tmp_path: Path) -> None:
    other = build("tone", tmp_path / "other", name="other", max_symbols=4000)
    limited = Service(memory_mb=100)
    trial.run(tone_bundle, Settings(service=limited))
    both = Settings(service=limited, voices=Voices(bundles=[str(other), str(tone_bundle)]))
    with pytest.raises(errors.PlanTooLarge):
        trial.run(tone_bundle, both)
    alone = Settings(service=limited, voices=Voices(bundles=[str(other)]))
    trial.run(tone_bundle, alone)  # this daemon does not load it beside the other


def test_a_trial_that_dies_or_hangs_is_a_refusal(tone_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.run

    def instead(code: str) -> None:
        def run(command: list[str], **options: object) -> object:
            return real([sys.executable, "-c", code], **options)  # type: ignore[call-overload]

        monkeypatch.setattr(trial.subprocess, "run", run)

    instead("import os; os.kill(os.getpid(), 11)")
    with pytest.raises(errors.BundleTrialFailed, match="SIGSEGV"):
        trial.run(tone_bundle, Settings())
    instead("raise ValueError('bad luck')")
    with pytest.raises(errors.BundleTrialFailed, match="bad luck"):
        trial.run(tone_bundle, Settings())
    monkeypatch.setattr(trial, "TRIAL_S", 0.2)
    instead("import time; time.sleep(60)")
    with pytest.raises(errors.BundleTrialFailed, match="did not end"):
        trial.run(tone_bundle, Settings())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to give up")
def test_root_may_try_what_only_root_can_read(copy: Path) -> None:
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert trial.run(copy, Settings()).voices == ("tone",)
