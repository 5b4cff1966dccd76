"""The command line as real processes: exit codes, output, signals, pipes, import weight."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
import time
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import zmq

from edged import errors, protocol
from edged.cli import exits, info
from edged.cli.speech import say as say_command
from edged.client import Client
from tests.daemon import Daemon, running
from tests.pulse import PulseServer, pulse, pulse_server

__all__ = ["pulse", "pulse_server"]

EDGED = [sys.executable, "-m", "edged"]
LONG = "This sentence is long enough to keep the voice busy. " * 40
HEAVY = {"numpy", "onnxruntime", "rich", "yaml", "soundfile", "sounddevice", "psutil", "asyncio"}


def edged(
    *args: str, input: bytes | None = None, python: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[bytes]:
    environment = {k: v for k, v in os.environ.items() if k not in ("EDGED_ENDPOINT", "EDGED_CONFIG")}
    return subprocess.run(
        [sys.executable, *python, "-m", "edged", *args],
        input=input,
        capture_output=True,
        env={**environment, **env},
        timeout=60,
    )


def at(daemon: Daemon, *args: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return edged(*args, EDGED_ENDPOINT=daemon.endpoint, **options)


def succeed(result: subprocess.CompletedProcess[bytes]) -> str:
    assert result.returncode == 0, result.stderr.decode()
    assert b"Traceback" not in result.stderr
    return result.stdout.decode()


def fail(result: subprocess.CompletedProcess[bytes], code: int) -> str:
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    assert b"Traceback" not in result.stderr
    return result.stderr.decode()


@pytest.fixture(scope="module")
def slow_daemon(slow_bundle: Path) -> Iterator[Daemon]:
    with running(slow_bundle) as started:
        yield started


def wait_for_jobs(client: Client, count: int, within_s: float = 10.0) -> None:
    until = time.monotonic() + within_s
    while len(client.status().jobs) != count:
        assert time.monotonic() < until, client.status().jobs
        time.sleep(0.01)


# -- without a daemon ---------------------------------------------------------------------------


def test_help_names_every_command_and_exit_code() -> None:
    text = succeed(edged("-h"))
    for word in ("serve", "say", "cancel", "status", "voices", "bundle", "Exit codes:", "130"):
        assert word in text
    assert "--endpoint" in succeed(edged("say", "--help"))
    assert succeed(edged("--version")).startswith("edged, version ")


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("say",),
        ("say", "--speed", "9", "x"),
        ("say", "--out", "x.unknown", "x"),
        ("say", "--out", "-", "--json", "x"),
        ("say", "--out", "x.wav", "--no-wait", "x"),
        ("say", "--format", "wav", "x"),
        ("say", "--show-refined", "--no-wait", "x"),
        ("say", "--temperature", "nan", "x"),
        ("say", "--laugh", "3", "x"),
        ("say", "--markup", "xml", "x"),
        ("say", "--run-voice", "bao", "x"),
        ("say", "--run-voice", "fr=bao", "x"),
        ("say", "--run-voice", "zh=", "x"),
        ("say", "--sampling", "zh", "x"),
        ("say", "--sampling", "zh:top_q=1", "x"),
        ("say", "--sampling", "zh:top_k=0", "x"),
        ("say", "--sampling", "zh:temperature=nan", "x"),
        ("ping", "--secret-key", "x.key_secret"),
        ("cancel",),
        ("cancel", "1", "--all"),
        ("cancel", "--all", "--mine"),
        ("pause", "1", "--all"),
        ("resume", "--from", "now"),
        ("stop",),
        ("volume", "5"),
        ("ping", "--timeout", "nan"),
        ("say", "--speed", "nan", "x"),
        ("say", "--out", "", "x"),
        ("bundle", "build", "tone", "--set", "rate=nan"),
        ("bundle", "build", "tone", "--set", "rate=[1]"),
        ("bundle", "build", "tone", "--set", "rate=2026-99-99"),
        ("bundle", "build", "tone", "--set", "work=x"),
        ("bundle", "build", "tone", "--set", "work=-1"),
        ("bundle", "build", "tone", "--set", "max_symbols=0"),
        ("bundle", "build", "tone", "--set", "name=../x"),
        ("bundle", "build", "tone", "--set", "out=x"),
        ("ping", "--endpoint", "ipc:///tmp/\udcff"),
        ("--endpoint", "ipc:///tmp/\udcff", "ping"),
        ("serve", "--endpoint", "ipc:///tmp/\udcff"),
        ("check-config",),
        ("bundle", "build", "tone", "--set", "nonsense"),
        ("keys", "make", "/tmp", "a/b"),
        ("keys", "make", "/tmp", ".."),
        ("keys", "make", "/tmp", "a\nb"),
    ],
)
def test_wrong_usage(args: tuple[str, ...]) -> None:
    assert fail(edged(*args), exits.USAGE).strip()


def test_alone_it_prints_its_help() -> None:
    assert "Exit codes:" in succeed(edged())


def test_where_audio_goes_is_checked_first(tmp_path: Path) -> None:
    assert "is a directory" in fail(edged("say", "--out", str(tmp_path), "x"), exits.USAGE)
    error = fail(edged("say", "--out", str(tmp_path / "a"), "x"), exits.USAGE)
    assert "has no suffix" in error
    assert ".wav .flac" in error


def shell(command: str, *args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """edged with the arguments, its streams redirected as the command says in place of EDGED."""
    command = command.replace("EDGED", '"$@"')
    call = ["sh", "-c", command, "sh", *EDGED, *args]
    return subprocess.run(call, capture_output=True, env={**os.environ, **env}, timeout=60)


def test_closed_streams(daemon: Daemon, tmp_path: Path) -> None:
    env = {"EDGED_ENDPOINT": daemon.endpoint}
    out = ("--out", str(tmp_path / "a.wav"))
    assert "stdin, which is closed" in fail(shell("EDGED <&-", "say", "-", *out, **env), exits.USAGE)
    assert "stdout, which is closed" in fail(shell("EDGED >&-", "say", "x", "--out", "-", **env), exits.USAGE)
    for args in (("status",), ("status", "--json"), ("protocol",), ("bundle", "list", "--json")):
        result = shell("EDGED <&- >&-", *args, EDGED_BUNDLES=str(tmp_path), **env)
        assert (succeed(result), result.stderr) == ("", b"")
    succeed(shell("EDGED <&- >&- 2>&-", "say", "Hello.", *out, **env))
    assert (tmp_path / "a.wav").read_bytes().startswith(b"RIFF")
    # What is meant for stderr must not land in the output.
    assert shell("EDGED 2>&-", "say", "--nonsense").stdout == b""
    assert shell("EDGED 2>&-", "cancel", "none", **env).stdout == b""
    store = shell("EDGED 2>&-", "bundle", "build", "tone", "--out", str(tmp_path / "tone"))
    assert succeed(store).strip() == str(tmp_path / "tone")


def test_a_full_disk_names_the_output(daemon: Daemon) -> None:
    for args in (("say", "--out", "-", "Hello."), ("ping", "--json"), ("ping",), ("protocol",)):
        error = fail(shell("EDGED >/dev/full", *args, EDGED_ENDPOINT=daemon.endpoint), exits.FAILED)
        assert error.splitlines() == [
            "edged: error [system]: No space left on device",
            "  standard output",
        ]
    for unbuffered in ("", "1"):
        result = shell(
            "EDGED >/dev/full", "ping", EDGED_ENDPOINT=daemon.endpoint, PYTHONUNBUFFERED=unbuffered
        )
        assert fail(result, exits.FAILED).endswith("standard output\n")
    full = ("say", "--out", "/dev/full", "--format", "wav", "Hello.")
    assert "/dev/full" in fail(at(daemon, *full), exits.FAILED)
    assert shell("EDGED 2>/dev/full", "say", "--nonsense").returncode == exits.USAGE
    assert shell("EDGED 2>/dev/full", "check-config").returncode == exits.USAGE


def test_audio_that_cannot_be_written_leaves_no_file(daemon: Daemon, tmp_path: Path) -> None:
    out = tmp_path / "a.wav"
    limited = shell("ulimit -f 0; EDGED", "say", "--out", str(out), "Hi.", EDGED_ENDPOINT=daemon.endpoint)
    assert str(out) in fail(limited, exits.FAILED)
    assert not out.exists()


def test_serve_without_standard_streams(tone_bundle: Path, tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/edged.sock"
    config = tmp_path / "edged.yaml"
    config.write_text("audio:\n  enabled: false\n")
    serve = [*EDGED, "serve", "--config", str(config), "--bundle", str(tone_bundle), "--endpoint", endpoint]
    process = subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *serve])
    try:
        until = time.monotonic() + 60
        while b"ready" not in (status := edged("status", "--endpoint", endpoint)).stdout:
            assert process.poll() is None, process.returncode
            assert time.monotonic() < until, status
            time.sleep(0.1)
        streams = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
        assert streams == ["/dev/null"] * 3  # and no socket
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


INTERRUPTED = """
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from edged.__main__ import main
main()
"""


def test_ctrl_c_while_it_starts_is_quiet() -> None:
    result = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (exits.INTERRUPTED, b"", b"")


@pytest.mark.parametrize(
    "args", [("say", "x"), ("status",), ("voices",), ("stats",), ("ping",), ("cancel", "1")]
)
def test_no_daemon(args: tuple[str, ...], tmp_path: Path) -> None:
    start = time.monotonic()
    error = fail(edged("--endpoint", f"ipc://{tmp_path}/none.sock", *args), exits.NO_DAEMON)
    assert time.monotonic() - start < 2
    assert error.startswith("edged: error [no_daemon]: ")
    assert "edged serve" in error
    result = edged(*args, "--json", "--endpoint", f"ipc://{tmp_path}/none.sock")
    assert result.returncode == exits.NO_DAEMON
    event = json.loads(result.stdout)
    assert (event["event"], event["code"], event["retryable"]) == ("failed", "no_daemon", True)
    assert not result.stderr


def test_check_config_tells_every_problem_on_its_line(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("limits:\n  jobs: 5\n")
    assert "ok" in succeed(edged("check-config", str(good)))
    bad.write_text("limits:\n  jobs: many\naudio:\n  volum: 1\n")
    result = edged("check-config", str(bad))
    fail(result, exits.USAGE)
    assert len(result.stdout.splitlines()) == 2
    fail(edged("check-config", str(tmp_path / "none.yaml")), exits.USAGE)
    told = json.loads(succeed(edged("check-config", "--json", str(good))))
    assert told == {"file": str(good), "ok": True, "problems": []}
    result = edged("check-config", "--json", str(bad))
    fail(result, exits.USAGE)
    told = json.loads(result.stdout)
    assert not told["ok"]
    assert [(p["line"], p["key"]) for p in told["problems"]] == [(2, "limits.jobs"), (4, "audio.volum")]


def test_the_printed_configuration_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "edged.yaml"
    file.write_text(succeed(edged("config")))
    succeed(edged("check-config", str(file)))


def test_protocol() -> None:
    text = succeed(edged("protocol"))
    assert "synthesize" in text
    assert "cancel_reply" in text
    schema = json.loads(succeed(edged("protocol", "--schema")))
    jsonschema.Draft202012Validator.check_schema(schema)


def test_keys_make(tmp_path: Path) -> None:
    directory = tmp_path / "keys"
    printed = succeed(edged("keys", "make", str(directory), "box")).splitlines()
    assert printed == [str(directory / "box.key"), str(directory / "box.key_secret")]
    assert (directory / "box.key_secret").stat().st_mode & 0o077 == 0
    assert "remove it first" in fail(edged("keys", "make", str(directory), "box"), exits.USAGE)


def test_bundles_are_built_listed_and_verified(tmp_path: Path) -> None:
    store = tmp_path / "bundles"
    env = {"EDGED_BUNDLES": str(store)}
    path = succeed(edged("bundle", "build", "tone", "--set", "rate=16000", **env)).strip()
    assert path == str(store / "tone")
    assert "tone" in succeed(edged("bundle", "list", **env))
    assert "every file" in succeed(edged("bundle", "verify", "tone", **env))
    assert "every file" in succeed(edged("bundle", "verify", path))
    engine = next((store / "tone" / "engines").iterdir())
    engine.write_bytes(engine.read_bytes()[:-1] + b"?")
    assert "[bundle_hash_mismatch]" in fail(edged("bundle", "verify", "tone", **env), exits.FAILED)
    assert "[bundle_missing]" in fail(edged("bundle", "verify", "none", **env), exits.MISSING)
    error = fail(edged("bundle", "build", "tone", "--set", "colour=red", **env), exits.USAGE)
    assert "no option 'colour'" in error
    error = fail(edged("bundle", "build", "none", **env), exits.FAILED)
    assert "[bundle_family_unknown]" in error
    assert "hibari, tone" in error


def test_a_build_leaves_an_installed_version_as_it_is(tmp_path: Path) -> None:
    """The folder's name has the hash of what is in it, and the link NAME leads to it."""
    env = {"EDGED_BUNDLES": str(tmp_path / "bundles")}
    first = tmp_path / "first"
    succeed(edged("bundle", "build", "tone", "--set", "rate=16000", "--out", str(first)))
    succeed(edged("bundle", "install", str(first), **env))
    succeed(edged("bundle", "activate", "tone", "--no-trial", "--no-reload", **env))
    version = (tmp_path / "bundles/tone").resolve()
    before = (version / "manifest.json").read_bytes()
    for out in ((), ("--out", str(tmp_path / "bundles/tone"))):
        told = succeed(edged("bundle", "build", "tone", "--set", "rate=22050", *out, **env))
        assert (version / "manifest.json").read_bytes() == before
        assert (tmp_path / "bundles/tone").resolve() == version
        assert "use it with: edged bundle activate tone-" in told
    folders = {p.name for p in (tmp_path / "bundles").iterdir() if p.is_dir() and not p.is_symlink()}
    assert len(folders) == 2, folders
    assert version.name in folders


def test_bundle_list_marks_damaged_bundles(tone_bundle: Path, tmp_path: Path) -> None:
    env = {"EDGED_BUNDLES": str(tmp_path)}
    for name in ("good", "cut", "hollow", "nonsense"):
        shutil.copytree(tone_bundle, tmp_path / name)
    (tmp_path / os.fsdecode(b"caf\xe9")).mkdir()
    shutil.copy(tone_bundle / "manifest.json", tmp_path / os.fsdecode(b"caf\xe9"))
    os.truncate(tmp_path / "cut/engines/tone.onnx", 100)
    (tmp_path / "hollow/engines/tone.onnx").unlink()
    (tmp_path / "nonsense/manifest.json").write_text("{")
    result = edged("bundle", "list", **env)
    error = fail(result, exits.FAILED)
    states = dict(line.split()[:2] for line in result.stdout.decode().splitlines())
    expected = {
        "bundle": "role",  # which only versions of the store have
        "caf\\udce9": "bundle_file_missing",
        "cut": "bundle_file_truncated",
        "good": "ok",
        "hollow": "bundle_file_missing",
        "nonsense": "bundle_manifest_invalid",
    }
    assert expected.items() <= states.items()  # this machine may have others
    assert "100 bytes of" in error
    result = edged("bundle", "list", "--json", **env)
    fail(result, exits.FAILED)
    told = json.loads(result.stdout)
    found = {entry["bundle"]: entry["state"] for entry in told["bundles"]}
    assert (found["good"], found["cut"]) == ("ok", "bundle_file_truncated")
    assert found[os.fsdecode(b"caf\xe9")] == "bundle_file_missing"
    assert str(tmp_path) in told["searched"]


def test_build_phases_are_plain_words(tmp_path: Path) -> None:
    said = edged("bundle", "build", "tone", "--out", str(tmp_path / "tone")).stderr.decode()
    assert [line.removeprefix("edged: ") for line in said.splitlines()] == [
        "model",
        "trial run",
        "moving into place",
        "done",
    ]


def test_serve_tells_why_it_cannot_start(daemon: Daemon, tmp_path: Path) -> None:
    endpoint = f"ipc://{tmp_path}/edged.sock"
    error = fail(edged("serve", "--bundle", str(tmp_path / "none"), "--endpoint", endpoint), exits.MISSING)
    assert "[bundle_missing]" in error
    assert "[already_running]" in fail(edged("serve", "--endpoint", daemon.endpoint), exits.FAILED)
    assert "[config]" in fail(edged("serve", "--config", str(tmp_path / "none.yaml")), exits.USAGE)


def test_audio_list_without_a_loudspeaker_or_portaudio(tmp_path: Path) -> None:
    nowhere = {"PULSE_SERVER": f"unix:{tmp_path}/none"}
    if b"[no_audio_device]" in (result := edged("audio", "list", **nowhere)).stderr:  # as in a container
        assert "connect a loudspeaker" in fail(result, exits.MISSING)
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')\n")
    error = fail(edged("audio", "list", PYTHONPATH=str(tmp_path)), exits.MISSING)
    assert "[no_audio_device]: PortAudio is not installed" in error
    assert "libportaudio2" in error
    result = edged("audio", "list", "--json", PYTHONPATH=str(tmp_path))
    assert result.returncode == exits.MISSING
    assert json.loads(result.stdout)["code"] == "no_audio_device"
    assert not result.stderr


@pytest.mark.audio
def test_audio_list(pulse: PulseServer) -> None:
    lines = succeed(result := edged("audio", "list")).splitlines()
    assert not result.stderr  # ALSA has a lot to say about devices that are not there
    assert lines[0].split() == ["device", "channels", "rates"]
    assert any(line.startswith("pulse ") and "48000, 24000, 44100 Hz" in line for line in lines[1:])
    assert sum(" * " in line for line in lines) == 1
    devices = json.loads(succeed(edged("audio", "list", "--json")))["devices"]
    assert [d["name"] for d in devices if d["default"]] == [
        line.split(" *")[0] for line in lines if " * " in line
    ]
    assert all(set(d) == {"name", "default", "channels", "rates", "problem"} for d in devices)
    assert next(d for d in devices if d["name"] == "pulse")["rates"][0] == 48_000


# -- weight -------------------------------------------------------------------------------------


def imported(result: subprocess.CompletedProcess[bytes]) -> set[str]:
    lines = result.stderr.decode().splitlines()
    return {line.rsplit("|", 1)[1].strip() for line in lines if line.startswith("import time:")}


def test_say_imports_nothing_heavy(daemon: Daemon, tmp_path: Path) -> None:
    result = at(daemon, "say", "--out", str(tmp_path / "a.wav"), "Hello.", python=("-X", "importtime"))
    succeed(result)
    assert not HEAVY & imported(result)


def test_serve_does_not_import_the_client_side(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    endpoint = f"ipc://{tmp_path}/edged.sock"
    result = edged("serve", "--bundle", missing, "--endpoint", endpoint, python=("-X", "importtime"))
    fail(result, exits.MISSING)
    assert not {"rich", "onnx", "edged.client", "edged.compiler"} & imported(result)


# -- with a daemon ------------------------------------------------------------------------------


def test_questions_in_text_and_json(daemon: Daemon) -> None:
    assert "answers in" in succeed(at(daemon, "ping"))
    assert "ready" in succeed(at(daemon, "status"))
    assert "tone *" in succeed(at(daemon, "voices"))
    assert "speed seed" in succeed(at(daemon, "voices"))
    assert "real-time factor" in succeed(at(daemon, "stats"))
    for command, event in (("ping", "pong"), ("status", "status_reply"), ("voices", "voices_reply")):
        assert json.loads(succeed(at(daemon, command, "--json")))["event"] == event
    assert json.loads(succeed(at(daemon, "stats", "--json")))["event"] == "stats_reply"
    assert json.loads(succeed(at(daemon, "cancel", "--all", "--json")))["jobs"] == []
    assert "nothing" in succeed(at(daemon, "cancel", "--mine"))


def test_say_makes_files_by_their_suffix(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "door.wav"
    assert succeed(at(daemon, "say", "Door", "open.", "--out", str(file), "--sample-rate", "16000")) == ""
    with wave.open(str(file)) as audio:
        assert audio.getframerate() == 16_000
        assert audio.getnframes() > 1_000
    for name, magic in (("a.flac", b"fLaC"), ("a.opus", b"OggS"), ("a.ogg", b"OggS")):
        succeed(at(daemon, "say", "Door open.", "--out", str(tmp_path / name)))
        assert (tmp_path / name).read_bytes().startswith(magic)
    done = json.loads(succeed(at(daemon, "say", "Door open.", "--out", str(tmp_path / "b.raw"), "--json")))
    assert (done["event"], done["format"]) == ("done", "pcm_s16le")
    assert "no directory" in fail(at(daemon, "say", "x", "--out", f"{tmp_path}/none/a.wav"), exits.USAGE)


def test_say_sends_how_the_text_is_read(daemon: Daemon, tmp_path: Path) -> None:
    say = ("say", "Door open.", "--out", str(tmp_path / "a.wav"))
    reading = ("--language", "en", "--numbers", "zh", "--digits", "digits", "--emoji", "name")
    order = ("--date-order", "ymd", "--markup", "plain", "--run-voice", "zh=spell")
    succeed(at(daemon, *say, *reading, *order))
    told = fail(at(daemon, *say, "--run-voice", "en=spell", "--run-voice", "zh=nobody"), exits.FAILED)
    assert "run_voices.zh: unknown voice 'nobody'" in told
    drawn = ("--sampling", "zh:temperature=0.2,top_k=3", "--sampling", "en:top_p=0.5")
    told = fail(at(daemon, *say, *drawn), exits.FAILED)
    assert "languages: the voice 'tone' cannot be steered by it" in told


def test_what_is_said_of_a_language_is_put_together() -> None:
    given = ("--sampling", "zh:temperature=0.2,top_k=3", "--sampling", "en:top_p=0.5")
    again = ("--sampling", "zh:top_k=4", "--run-voice", "en=spell", "x")
    with say_command.make_context("say", [*given, *again]) as context:
        assert context.params["languages"] == {"zh": {"temperature": 0.2, "top_k": 4}, "en": {"top_p": 0.5}}
        assert context.params["run_voices"] == {"en": "spell"}
    with say_command.make_context("say", ["x"]) as context:
        assert context.params["languages"] is context.params["run_voices"] is None


def test_say_streams_to_stdout_and_reads_stdin(daemon: Daemon, tmp_path: Path) -> None:
    pcm = ("--out", "-", "--format", "pcm_s16le")
    told = at(daemon, "say", "Door open.", *pcm)
    piped = at(daemon, "say", "-", *pcm, input=b"Door open.\n")
    file = tmp_path / "a.pcm"
    succeed(at(daemon, "say", "Door open.", "--out", str(file)))
    assert told.stdout == piped.stdout == file.read_bytes()
    assert at(daemon, "say", "Door open.", "--out", "-").stdout.startswith(b"RIFF")


def test_failures_of_a_job(daemon: Daemon, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "a.wav"))
    error = fail(at(daemon, "say", "Hello.", "--voice", "nobody", *out), exits.FAILED)
    assert error.startswith("edged: error [unknown_voice]: ")
    assert "\n  voices: tone" in error
    assert "[empty_text]" in fail(at(daemon, "say", "-", *out, input=b""), exits.FAILED)
    (tmp_path / "code").write_text("no speaker\n")
    for steered in (
        *(("--temperature", "0.5"), ("--top-p", "0.5"), ("--top-k", "9"), ("--repetition-penalty", "1.1")),
        *(("--refine",), ("--oral", "1"), ("--laugh", "1"), ("--break", "1")),
        *(("--refine", "--show-refined"), ("--speaker", "x"), ("--speaker", f"@{tmp_path}/code")),
    ):
        error = fail(at(daemon, "say", "Hello.", *steered, *out), exits.FAILED)
        assert error.startswith(f"edged: error [bad_value]: {steered[0].strip('-').replace('-', '_')}: ")
    succeed(at(daemon, "say", "Hello.", "--no-refine", *out))
    assert "none.code" in fail(at(daemon, "say", "x", "--speaker", "@none.code", *out), exits.FAILED)
    assert "not UTF-8" in fail(at(daemon, "say", "-", *out, input=b"\xff"), exits.FAILED)
    assert "[frame_too_large]" in fail(at(daemon, "say", "-", *out, input=b"x" * 400_000), exits.FAILED)
    assert "[frame_too_large]" in fail(at(daemon, "say", "-", *out, input=b"x" * 2_000_000), exits.FAILED)
    assert "[unknown_job]" in fail(at(daemon, "cancel", "none"), exits.FAILED)
    assert "characters have no sound" in at(daemon, "say", "Hi \U0001f600", *out).stderr.decode()
    assert "[no_audio_device]" in fail(at(daemon, "say", "Hello."), exits.MISSING)
    result = at(daemon, "say", "Hello.", "--no-wait", "--json")
    fail(result, exits.MISSING)
    assert json.loads(result.stdout)["code"] == "no_audio_device"
    assert not list(tmp_path.glob("*.wav.*"))


def test_what_is_not_unicode_is_told_under_its_own_name(daemon: Daemon, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "a.wav"))
    assert "bad_value]: job: " in fail(at(daemon, "cancel", "\udcff"), exits.FAILED)
    assert "bad_value]: voice: " in fail(at(daemon, "say", "x", "--voice", "\udcff", *out), exits.FAILED)
    assert "bad_value]: text: " in fail(at(daemon, "say", "\udcff", *out), exits.FAILED)
    result = edged("ping", EDGED_ENDPOINT="ipc:///tmp/\udcff")
    assert "bad_value]: the endpoint " in fail(result, exits.FAILED)


class Starting(threading.Thread):
    """A socket that says `starting` to the first requests and then serves, as a daemon does."""

    def __init__(self, endpoint: str, refusals: int) -> None:
        super().__init__(daemon=True)
        self.refusals = refusals
        self.router = zmq.Context.instance().socket(zmq.ROUTER)
        self.router.bind(endpoint)
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.is_set():
            if not self.router.poll(50):
                continue
            identity, header = self.router.recv_multipart()
            for event, *data in self.answers(protocol.decode_request(header)):
                self.router.send_multipart([identity, protocol.encode(event), *data])
        self.router.close(linger=0)

    def answers(self, request: protocol.AnyRequest) -> Iterator[tuple[Any, ...]]:
        if not isinstance(request, protocol.Speech):
            return
        if self.refusals > 0:
            self.refusals -= 1
            yield (protocol.failed(errors.Starting("the daemon is still starting"), id=request.id),)
            return
        yield (protocol.Accepted(id=request.id, job="1", position=0),)
        if isinstance(request, protocol.Synthesize):
            audio = protocol.Audio(
                id=request.id, job="1", seq=0, samples=2, sample_rate=8_000, format="wav", last=True
            )
            yield audio, b"RIFF"
        yield (protocol.Done(id=request.id, job="1", audio_s=1, synthesis_s=1, rtf=1, first_audio_ms=1),)


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    made: list[Starting] = []

    def make(refusals: int) -> str:
        endpoint = f"ipc://{tmp_path}/starting{len(made)}.sock"
        made.append(Starting(endpoint, refusals))
        made[-1].start()
        return endpoint

    yield make
    for thread in made:
        thread.ended.set()
        thread.join()


def test_say_waits_for_a_daemon_that_starts(starting: Callable[[int], str], tmp_path: Path) -> None:
    out = tmp_path / "a.wav"
    succeed(edged("say", "Hello.", EDGED_ENDPOINT=starting(2)))
    succeed(edged("say", "Hello.", "--out", str(out), EDGED_ENDPOINT=starting(2)))
    assert out.read_bytes() == b"RIFF"
    assert succeed(edged("say", "Hello.", "--out", "-", EDGED_ENDPOINT=starting(1))) == "RIFF"


def test_say_gives_up_on_a_daemon_that_starts(starting: Callable[[int], str]) -> None:
    begin = time.monotonic()
    result = edged("say", "Hello.", "--timeout", "1.2", EDGED_ENDPOINT=starting(1_000))
    assert "[starting]" in fail(result, exits.BUSY)
    assert time.monotonic() - begin > 0.9


def test_status_shows_tcp_addresses_and_a_daemon_that_starts() -> None:
    reply = protocol.StatusReply(
        state="starting",
        version="1",
        pid=1,
        uptime_s=1.0,
        rss_mb=1.0,
        jobs=[],
        audio_device="",
        audio_error="",
        endpoint="ipc:///e",
        events="ipc:///v",
        buffers_mb=1.0,
        tcp="tcp://0.0.0.0:5555",
        tcp_events="tcp://0.0.0.0:5556",
    )
    facts = dict(info._facts(reply))
    assert facts["state"] == "starting"
    assert (facts["tcp"], facts["tcp events"]) == ("tcp://0.0.0.0:5555", "tcp://0.0.0.0:5556")
    assert "tcp" not in dict(info._facts(msgspec.structs.replace(reply, tcp="")))
    assert "sound error" not in facts


def test_ctrl_c_cancels_the_job(slow_daemon: Daemon) -> None:
    with Client(slow_daemon.endpoint) as client:
        before = client.stats().cancelled
        say = subprocess.Popen(
            [*EDGED, "--endpoint", slow_daemon.endpoint, "say", "--out", "-", LONG],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        wait_for_jobs(client, 1)
        say.send_signal(signal.SIGINT)
        _, stderr = say.communicate(timeout=5)
        assert say.returncode == exits.INTERRUPTED
        assert b"Traceback" not in stderr
        wait_for_jobs(client, 0, within_s=2.0)
        assert client.stats().cancelled == before + 1


def test_a_reader_that_has_enough_cancels_quietly(slow_daemon: Daemon) -> None:
    with Client(slow_daemon.endpoint) as client:
        say = subprocess.Popen(
            [*EDGED, "--endpoint", slow_daemon.endpoint, "say", "--out", "-", LONG],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert say.stdout is not None
        assert say.stderr is not None
        assert len(say.stdout.read(100)) == 100
        say.stdout.close()
        assert say.wait(10) == exits.FAILED
        assert say.stderr.read() == b""
        say.stderr.close()
        wait_for_jobs(client, 0, within_s=2.0)


def test_cancel_mine_ends_another_say(slow_daemon: Daemon, tmp_path: Path) -> None:
    with Client(slow_daemon.endpoint) as client:
        say = subprocess.Popen(
            [
                *EDGED,
                "--endpoint",
                slow_daemon.endpoint,
                "say",
                "--json",
                "--out",
                str(tmp_path / "a.wav"),
                LONG,
            ],
            stdout=subprocess.PIPE,
        )
        wait_for_jobs(client, 1)
        job = client.status().jobs[0].job
        assert job in succeed(at(slow_daemon, "status"))
        assert job in succeed(at(slow_daemon, "cancel", "--mine"))
        stdout, _ = say.communicate(timeout=5)
        assert say.returncode == exits.FAILED
        event = json.loads(stdout)
        assert (event["event"], event["code"], event["job"]) == ("failed", "cancelled", job)
        assert not (tmp_path / "a.wav").exists()


def test_timeout_and_busy(slow_bundle: Path, tmp_path: Path) -> None:
    with running(slow_bundle, limits={"jobs": 1}) as daemon, Client(daemon.endpoint) as client:
        out = ("--out", str(tmp_path / "a.wav"))
        with client.stream(LONG) as stream:
            next(stream)
            assert "[busy]" in fail(at(daemon, "say", "Hello.", *out), exits.BUSY)
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            assert "[timeout]" in fail(at(daemon, "ping", "--timeout", "0.5"), exits.TIMEOUT)
        finally:
            daemon.process.send_signal(signal.SIGCONT)


def on_a_terminal(*args: str) -> tuple[int, str]:
    """The exit code and everything printed, with stdout and stderr on a pseudo-terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*EDGED, *args], stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"}
    )
    os.close(slave)
    shown = b""
    try:
        while data := os.read(master, 65536):
            shown += data
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(master)
    return process.wait(10), shown.decode()


def test_on_a_terminal_tables_and_a_spinner_are_drawn(slow_daemon: Daemon, tmp_path: Path) -> None:
    endpoint = ("--endpoint", slow_daemon.endpoint)
    code, shown = on_a_terminal("voices", *endpoint)
    assert code == 0
    assert "┃" in shown
    code, shown = on_a_terminal("say", "--out", str(tmp_path / "a.wav"), LONG[:200], *endpoint)
    assert code == 0
    assert "speaking" in shown
    code, shown = on_a_terminal("bundle", "build", "tone", "--out", str(tmp_path / "tone"))
    assert code == 0
    assert str(tmp_path / "tone") in shown.replace("\r\n", "")
    code, shown = on_a_terminal("status", *endpoint)
    assert "ready" in shown
    code, shown = on_a_terminal("say", "--out", "-", "Hello.", *endpoint)
    assert (code, "not written to a terminal" in shown) == (exits.USAGE, True)
