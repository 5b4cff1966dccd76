"""The trial of a bundle in a process of its own: what it lets through and what it refuses."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import msgspec
import psutil
import pytest

from edged import errors
from edged.bundle_write import write_manifest
from edged.compiler import build
from edged.manifest import Manifest, read_manifest
from edged.settings import Service, Settings, Voices
from edged.voices import catalog, trial


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


@pytest.fixture
def instead(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has other code run in place of the trial's."""

    def use(code: str) -> None:
        monkeypatch.setattr(trial, "python", lambda _: [sys.executable, "-c", code])

    return use


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os; os.kill(os.getpid(), 11)", "ended by SIGSEGV"),
        ("import os; os._exit(128 + 9)", "ended by SIGKILL"),
        ("import os; os.kill(os.getpid(), 40)", "ended by signal 40"),
        ("raise ValueError('bad luck')", "ended with code 1: .*bad luck"),
        ("print('x' * 10_000_000)", "ended with code 0"),
    ],
)
def test_a_trial_that_dies_is_a_refusal(
    tone_bundle: Path, instead: Callable[[str], None], code: str, told: str
) -> None:
    instead(code)
    with pytest.raises(errors.BundleTrialFailed, match=told):
        trial.run(tone_bundle, Settings())


SLEEPER = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True)\n"


def test_what_a_trial_began_ends_with_it(
    tone_bundle: Path, instead: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = monotonic()
    instead(SLEEPER + "raise ValueError('bad luck')")  # the sleeper holds its pipes
    with pytest.raises(errors.BundleTrialFailed, match="bad luck"):
        trial.run(tone_bundle, Settings())
    assert monotonic() - begin < 20
    monkeypatch.setattr(trial, "TRIAL_S", 1.0)
    instead(SLEEPER + "import time; time.sleep(60)")
    with pytest.raises(errors.BundleTrialFailed, match="did not end"):
        trial.run(tone_bundle, Settings())
    until = monotonic() + 10
    while children := [p for p in psutil.Process().children(recursive=True) if p.name() == "sleep"]:
        assert monotonic() < until, children
        sleep(0.05)


POISON = "import os; open(os.environ['MARKER'], 'w').close(); raise SystemExit(3)\n"


def test_no_code_of_the_current_folder_is_run(
    tone_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, marker = tmp_path / "here", tmp_path / "marker"
    here.mkdir()
    for name in ("msgspec", "click", "json", "runpy"):
        (here / f"{name}.py").write_text(POISON)
    monkeypatch.chdir(here)
    monkeypatch.setenv("MARKER", str(marker))
    monkeypatch.setenv("EDGED_BUNDLES", "bundles")
    monkeypatch.syspath_prepend("")  # as an interactive interpreter has it
    assert trial.run(tone_bundle, Settings()).voices == ("tone",)
    catalog._build("tone")
    assert (here / "bundles" / "tone" / "manifest.json").is_file(), "relative to the folder of the caller"
    assert not marker.exists()


# Runs a trial on a terminal of its own; the bundle tells what it could do with it.
ON_A_TERMINAL = """
import os, pty, sys
child, terminal = pty.fork()
if not child:
    from pathlib import Path
    from edged.settings import Settings
    from edged.voices import catalog, trial
    trial.python = lambda _: [sys.executable, "-c", sys.argv[2]]
    try:
        trial.run(Path(sys.argv[1]), Settings())
    except Exception as error:
        print(error, flush=True)
    os._exit(0)
print(child, flush=True)
if len(sys.argv) > 3:
    os.read(0, 1)
    os.write(terminal, b"\x03")  # Ctrl-C
try:
    while chunk := os.read(terminal, 1000):
        sys.stdout.buffer.write(chunk)
        sys.stdout.flush()
except OSError:  # the end of a terminal
    pass
os.waitpid(child, 0)
"""


def test_a_trial_has_no_terminal(tone_bundle: Path) -> None:
    command = [
        sys.executable,
        "-c",
        ON_A_TERMINAL,
        str(tone_bundle),
        "import os; os.open('/dev/tty', os.O_RDWR)",
    ]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "No such device or address: '/dev/tty'" in told


def test_ctrl_c_ends_the_trial_too(tone_bundle: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"import os, time; open({str(ready)!r}, 'w').write(str(os.getpid())); time.sleep(100)"
    command = [sys.executable, "-c", ON_A_TERMINAL, str(tone_bundle), code, "interrupt"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        until = monotonic() + 30
        while not (ready.exists() and ready.read_text()):
            assert monotonic() < until
            sleep(0.05)
        trying = psutil.Process(int(ready.read_text()))
        process.stdin.write(b"x")
        process.stdin.flush()
        trying.wait(timeout=20)
        output, _ = process.communicate(timeout=20)
        assert b"KeyboardInterrupt" in output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to give up")
def test_root_may_try_what_only_root_can_read(copy: Path) -> None:
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert trial.run(copy, Settings()).voices == ("tone",)
