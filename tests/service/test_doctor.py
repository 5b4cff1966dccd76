"""`edged doctor` and the journal's manual, for one who has nothing else: one real fault at a time."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from edged.notices import message_id
from tests.service.edged import CONFIG, Edged

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]

SILENT = "audio: {enabled: false}\n"
TONE = "voices: {bundles: [tone]}\n"
BUNDLES = "/var/lib/edged/bundles"
SPOKEN = "Melancholy pelicans whisper zephyrs."
CHINESE = {"LC_ALL": "zh_CN.UTF-8"}

ORDER = ("skipped", "ok", "warning", "failed")

Checks = dict[str, dict[str, Any]]


def doctor(edged: Edged, *options: str, user: str = "alice") -> tuple[int, Checks]:
    """Exit code, and what was found, by name: the worst where a name comes several times."""
    command = ["env", "-C", "/tmp", "edged", "doctor", "--json", "--no-tone", *options]
    done = edged.machine.run(*command, user=user, check=False)
    assert not done.stderr
    told = json.loads(done.stdout)
    assert told["ok"] == (done.returncode == 0)
    worst_last = sorted(told["checks"], key=lambda check: ORDER.index(check["state"]))
    return done.returncode, {check["name"]: check for check in worst_last}


def bad(checks: Checks) -> set[str]:
    return {name for name, check in checks.items() if check["state"] in ("warning", "failed")}


@contextmanager
def without_portaudio(edged: Edged) -> Iterator[None]:
    run = edged.machine.run
    library = run("find", "/usr/lib", "-name", "libportaudio.so.2").stdout.strip()
    run("sh", "-c", f"mkdir /srv/kept && mv {library}* /srv/kept && ldconfig")
    try:
        yield
    finally:
        run("sh", "-c", f"mv /srv/kept/* {library.rpartition('/')[0]}/ && rmdir /srv/kept && ldconfig")


def test_all_is_well(edged: Edged) -> None:
    edged.machine.run("systemctl", "enable", "edged")
    edged.start()
    code, found = doctor(edged)
    assert (code, bad(found)) == (0, set())
    assert found["speech"]["state"] == found["socket"]["state"] == found["bundle tone"]["state"] == "ok"


def test_a_user_who_may_not_speak(edged: Edged) -> None:
    edged.start()
    code, found = doctor(edged, user="bob")
    assert code == 1
    assert found["socket"]["remedy"].startswith("sudo usermod -aG edged bob")
    assert found["service"]["message"].startswith("active")


def test_no_daemon(edged: Edged) -> None:
    code, found = doctor(edged)
    assert code == 1
    assert found["service"]["remedy"] == "sudo systemctl start edged"
    assert (found["daemon"]["code"], found["speech"]["state"]) == ("no_daemon", "skipped")


def test_no_portaudio(edged: Edged) -> None:
    with without_portaudio(edged):
        edged.configure(TONE)
        edged.start()
        code, found = doctor(edged)
    assert code == 1
    assert "PortAudio is not installed" in found["loudspeaker"]["message"]
    assert "apt install libportaudio2" in found["loudspeaker"]["remedy"]
    assert found["speech"]["state"] == "ok"


def _damage(edged: Edged) -> str:
    change = "printf x | dd of=$file bs=1 seek=99 conv=notrunc"
    edged.machine.run("sh", "-c", f"for file in {BUNDLES}/victim/engines/*; do {change}; done")
    return "bundle_hash_mismatch"


def _remove(edged: Edged) -> str:
    edged.machine.run("rm", "-r", f"{BUNDLES}/victim")
    return "bundle_missing"


@pytest.mark.parametrize("harm", [_damage, _remove])
def test_a_voice_that_is_damaged_or_missing(edged: Edged, harm: Callable[[Edged], str]) -> None:
    edged.machine.run("cp", "-r", f"{BUNDLES}/tone", f"{BUNDLES}/victim")
    expected = harm(edged)
    edged.configure("voices: {bundles: [victim]}\n" + SILENT)
    edged.drop_in("fast.conf", "[Service]\nRestartSec=50ms\n[Unit]\nStartLimitBurst=2\n")
    assert not edged.try_to_start()
    edged.wait_for("ActiveState", "failed")
    code, found = doctor(edged, user="root")
    edged.machine.run("rm", "-rf", f"{BUNDLES}/victim")
    assert code == 1
    assert found["bundle victim"]["code"] == expected
    assert "cannot start" in found["service"]["message"], "the last line of the log says why"
    assert expected in found["service"]["message"]
    assert "reset-failed" in found["service"]["remedy"]


def test_a_configuration_that_only_root_may_read(edged: Edged) -> None:
    edged.machine.run("chmod", "600", CONFIG)
    assert not edged.try_to_start()
    for user, state in (("root", "failed"), ("alice", "warning")):
        code, found = doctor(edged, user=user)
        assert code == 1
        assert found["configuration"]["state"] == state
    assert "a configuration that cannot be used" in found["service"]["message"]
    _explained(edged, "config")


def test_a_full_disk(edged: Edged) -> None:
    edged.machine.run("mkdir", "-p", "/mnt/small")
    edged.machine.run("mount", "-t", "tmpfs", "-o", "size=40m", "none", "/mnt/small")
    edged.configure("voices: {bundles: [tone], directory: /mnt/small}\n" + SILENT)
    edged.start()
    code, found = doctor(edged)
    edged.machine.run("umount", "-l", "/mnt/small")
    assert code == 1
    assert found["disk"]["state"] == "failed"
    assert "/mnt/small" in found["disk"]["message"]
    assert found["speech"]["state"] == "ok"


def test_too_little_memory(edged: Edged) -> None:
    edged.configure(TONE + SILENT + "service: {memory_mb: 1000000}\n")
    """Of a running daemon near its budget, tests/test_doctor.py has a test."""
    _, found = doctor(edged)
    assert found["memory"]["state"] == "warning"  # more than the machine has
    assert "MemoryMax=" in found["service's limit"]["remedy"]  # more than its unit may take


# -- the support archive ------------------------------------------------------------------------


def test_the_support_archive_holds_no_spoken_text_and_no_secret(edged: Edged) -> None:
    run = edged.machine.run
    run("edged", "keys", "make", "/etc/edged/keys", "daemon")
    run("chown", "-R", "edged:edged", "/etc/edged/keys")
    secret = (edged.machine.root / "etc/edged/keys/daemon.key_secret").read_text()
    [key] = [line.split('"')[1] for line in secret.splitlines() if "secret-key" in line]
    tcp = "{tcp: 'tcp://127.0.0.1:5999', curve_secret: /etc/edged/keys/daemon.key_secret, "
    listen = f"listen: {tcp}curve_clients: /etc/edged/keys}}\n"
    edged.configure(TONE + SILENT + listen + "log: {level: debug}\n")
    edged.drop_in("library.conf", f"[Service]\nExecStartPre=/bin/echo {SPOKEN}\n")  # one that tells all
    edged.start()
    assert edged.say(SPOKEN, "--voice", "nobody").returncode != 0
    assert edged.say(SPOKEN).returncode == 0
    run("systemctl", "reload", "edged")
    assert SPOKEN in edged.log
    doctor(edged, "--bundle", "/tmp/support.tar.gz", user="root")
    packed = (edged.machine.root / "tmp/support.tar.gz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive.getmembers()}  # type: ignore[union-attr]
    assert b"job done" in files["edged-support/journal.jsonl"]
    everything = b"\0".join([packed, *files.values(), *map(str.encode, files)])
    for private in (SPOKEN, SPOKEN.split()[1], key, "daemon.key_secret"):
        for form in (private, private.lower(), json.dumps(private), str(list(private.encode()))[1:-1]):
            assert form.encode() not in everything, form
        assert base64.b64encode(private.encode())[:8] not in everything
        assert private.encode("utf-16-le") not in everything


# -- the journal as the manual ------------------------------------------------------------------


def _explained(edged: Edged, code: str) -> None:
    """The line with this code is there, and `journalctl -x` says more about it, in both languages."""
    run = edged.machine.run
    run("journalctl", "--sync")
    # A locale that is installed is enough for journalctl; what else would be in it does not matter here.
    run("cp", "-rn", "/usr/lib/locale/C.utf8", "/usr/lib/locale/zh_CN.utf8")
    show = ["journalctl", "-u", "edged", "-x", "-b", "--no-pager", f"MESSAGE_ID={message_id(code)}"]
    english = run(*show).stdout
    chinese = run("env", *(f"{name}={value}" for name, value in CHINESE.items()), *show).stdout
    for text, parts in (
        (english, ("For the user: ", "What to do: ", "See also: ")),
        (chinese, ("对用户的影响：", "处理方法：", "另见：")),
    ):
        assert f"code={code}" in text
        for part in parts:
            assert f"░░ {part}" in text


def test_what_is_missing_is_explained_in_both_languages(edged: Edged) -> None:
    edged.configure(TONE)  # and there is no loudspeaker
    edged.start()
    _explained(edged, "no_audio_device")
