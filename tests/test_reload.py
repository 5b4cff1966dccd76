"""Reload: which settings change, which wait for a restart, and that no job notices."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edged import protocol
from edged.bundle_write import write_manifest
from edged.client import Client
from edged.compiler import build
from edged.config import load
from edged.errors import ReplyTimeout
from edged.manifest import read_manifest
from edged.reload import LIVE, Reloader, differences, loads, merge
from edged.settings import Settings, VoiceDefaults
from edged.store import Store
from edged.store_install import install
from tests.daemon import Daemon, receive, receive_until, running, send
from tests.notify import heard, manager

SENTENCE = "Pump four has stopped."
LONG = " ".join(f"Line number {n} is running again." for n in range(5))


# -- which settings -------------------------------------------------------------------------------


def other(value: object) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "x"
        case list():
            return [*value, "x"]
        case dict():
            return {**value, "x": VoiceDefaults()}
    raise AssertionError(value)


def every() -> list[tuple[str, str]]:
    settings = Settings()
    return [(g, n) for g in settings.__struct_fields__ for n in getattr(settings, g).__struct_fields__]


@pytest.mark.parametrize(("group", "name"), every())
def test_each_setting_changes_now_or_waits(group: str, name: str) -> None:
    old = Settings()
    section = getattr(old, group)
    value = other(getattr(section, name))
    new = msgspec.structs.replace(old, **{group: msgspec.structs.replace(section, **{name: value})})
    merged, changed, waiting = merge(old, new)
    key = f"{group}.{name}"
    assert (changed, waiting) in (([key], []), ([], [key]))
    assert merged == (new if changed else old)
    assert merge(merged, new)[2] == waiting, "it is told again at the next reload"
    assert merge(merged, merged) == (merged, [], [])


def test_the_live_ones_exist_and_those_of_voices_load_them() -> None:
    known = {f"{group}.{name}" for group, name in every()} | {group for group, _ in every()}
    assert set(LIVE) <= known
    assert loads(["limits.jobs", "engine.threads"])
    assert loads(["voices.bundles"])
    assert not loads(["voices.default", "limits.jobs", "audio.volume"])
    assert list(differences(Settings(), Settings())) == []


# -- the real daemon ------------------------------------------------------------------------------


def logged(daemon: Daemon, text: str) -> None:
    until = time.monotonic() + 20
    while text not in daemon.log:
        assert time.monotonic() < until, daemon.log
        time.sleep(0.02)


def threads(daemon: Daemon, name: str) -> int:
    tasks = Path(f"/proc/{daemon.process.pid}/task").glob("*/comm")
    return [path.read_text().strip() for path in tasks].count(name)


def planned(daemon: Daemon, owner: str) -> list[str]:
    rows = daemon.request({"op": "status", "memory": True})["memory"]
    return [row["name"] for row in rows if row["name"].startswith(owner)]


def test_new_limits_and_defaults_count_from_the_answer_on(tone_bundle: Path) -> None:
    with running(tone_bundle) as daemon:
        daemon.configure(limits={"text_chars": 10}, voices={"defaults": {"tone": {"speed": 2.0}}})
        plain = daemon.request({"op": "synthesize", "text": "Pump four"})["audio_s"]
        reply = daemon.request({"op": "reload", "id": "r"})
        assert (reply["event"], reply["id"]) == ("reload_reply", "r")
        assert sorted(reply["changed"]) == ["limits.text_chars", "voices.defaults"]
        assert (reply["restart"], reply["loaded"]) == ([], [])
        assert reply["bundles"] == {str(tone_bundle): str(tone_bundle.resolve())}
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["code"] == "text_too_long"
        assert daemon.request({"op": "synthesize", "text": "Pump four"})["audio_s"] < plain * 0.7


def test_how_texts_are_read_and_who_speaks_for_whom_changes_at_once(tone_bundle: Path) -> None:
    with running(tone_bundle) as daemon:
        for tone, says in (
            ({"run_voices": {"zh": "gone"}}, "voices.defaults.tone.run_voices.zh: unknown voice 'gone'"),
            ({"languages": {"en": {"top_k": 1}}}, "voices.defaults.tone.languages: this voice cannot be"),
        ):
            daemon.configure(voices={"defaults": {"tone": tone}})
            refused = daemon.request({"op": "reload"})
            assert (refused["event"], refused["code"]) == ("failed", "config")
            assert says in refused["message"]
        daemon.configure(
            voices={"defaults": {"tone": {"run_voices": {"zh": "spell"}}}}, reading={"emoji": "name"}
        )
        reply = daemon.request({"op": "reload"})
        assert reply["event"] == "reload_reply", reply
        assert (set(reply["changed"]), reply["restart"]) == ({"voices.defaults", "reading.emoji"}, [])
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"


def test_how_clients_are_heard_changes_at_once(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, daemon.socket() as socket:
        for priority in ("text", "message"):
            if priority != "text":
                daemon.configure(speech={"clients": [{"client": "panel", "priority": priority}]})
                assert daemon.request({"op": "reload"})["changed"] == ["speech.clients"]
            send(socket, op="synthesize", text=SENTENCE, id=priority, client="panel", reply="events")
            receive_until(socket, "accepted")
            jobs = daemon.request({"op": "status"})["jobs"]
            assert jobs[-1]["priority"] == priority


def test_what_needs_a_restart_is_named_and_the_rest_is_done(tone_bundle: Path) -> None:
    with running(tone_bundle) as daemon:
        daemon.configure(limits={"jobs": 7, "reply_mb": 32}, listen={"heartbeat_ms": 400})
        for _ in range(2):
            reply = daemon.request({"op": "reload"})
            assert sorted(reply["restart"]) == ["limits.reply_mb", "listen.heartbeat_ms"]
        assert reply["changed"] == [], "it was changed by the first one"
        logged(daemon, "limits.reply_mb")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"limits": {"jobs": 0}}, "config"),
        ({"voices": {"default": "nobody"}}, "config"),
        ({"voices": {"bundles": ["/nowhere/at-all"]}}, "bundle_missing"),
        ({"voices": {"defaults": {"tone": {"oral": 3}}}}, "config"),
    ],
)
def test_a_bad_one_changes_nothing_and_says_so(
    tone_bundle: Path, change: dict[str, dict[str, Any]], code: str
) -> None:
    with running(tone_bundle) as daemon:
        daemon.configure(**{"limits": {"text_chars": 5}, **change})
        reply = daemon.request({"op": "reload"})
        assert (reply["event"], reply["code"]) == ("failed", code)
        assert reply["message"]
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        logged(daemon, "everything stays as it was")


def test_sighup_reloads(tone_bundle: Path) -> None:
    with running(tone_bundle) as daemon:
        daemon.configure(limits={"text_chars": 10})
        daemon.process.send_signal(signal.SIGHUP)
        logged(daemon, "reloaded")
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["code"] == "text_too_long"
        daemon.config.write_text("limits: {jobs: many}")
        daemon.process.send_signal(signal.SIGHUP)
        logged(daemon, "everything stays as it was")
        assert daemon.stop() == 0


def test_systemd_is_told_the_beginning_and_the_end_of_every_reload(tone_bundle: Path) -> None:
    """As Type=notify-reload asks for it: READY ends what RELOADING began, after the signal, come what may."""
    with manager(timeout_s=60.0) as (listener, prefix), running(tone_bundle, prefix=prefix) as daemon:
        daemon.request({"op": "ping"})
        for jobs, text in ((7, "reloaded"), (0, "everything stays as it was")):
            heard(listener, 0.2)
            daemon.configure(limits={"jobs": jobs})
            before_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            daemon.process.send_signal(signal.SIGHUP)
            logged(daemon, text)
            told = [line for line in heard(listener, 1.0) if "RELOADING=1" in line or "READY=1" in line]
            assert [line.split("\n")[0] for line in told] == ["RELOADING=1", "READY=1"]
            stamp = told[0].split("\n")[1]
            assert stamp.startswith("MONOTONIC_USEC=")
            assert int(stamp.partition("=")[2]) >= before_us
            assert told[1].split("\n")[1] == "STATUS=ready: tone"


def test_other_voices_while_a_job_speaks(slow_bundle: Path, tone_bundle: Path) -> None:
    with running(slow_bundle, service={"warmup": False}) as daemon, daemon.socket() as socket:
        before = daemon.request({"op": "status", "memory": True})
        send(socket, op="synthesize", text=LONG, id="old", reply="events", stream=True)
        receive_until(socket, "started")
        daemon.configure(voices={"bundles": [str(tone_bundle)]})
        reply = daemon.request({"op": "reload"})
        assert (reply["changed"], reply["loaded"]) == (["voices.bundles"], ["tone"])
        both = daemon.request({"op": "status", "memory": True})
        assert both["buffers_mb"] > before["buffers_mb"]
        assert threads(daemon, "edged-engine") == 2
        new = daemon.request({"op": "synthesize", "text": SENTENCE})
        assert new["event"] == "done"
        events = receive_until(socket, "done", "failed", "cancelled")
        assert events[-1]["event"] == "done"
        assert sum(e.get("samples", 0) for e in events) > 0
        until = time.monotonic() + 20
        while threads(daemon, "edged-engine") > 1 or planned(daemon, f"{slow_bundle.name}."):
            assert time.monotonic() < until, "the former voices are freed when their last job has ended"
            time.sleep(0.02)
        assert daemon.stop() == 0


def test_without_room_for_both_it_asks_for_a_restart(tone_bundle: Path, tmp_path: Path) -> None:
    # What is planned for replies needs no memory here, and counts all the same.
    limits, engine = (
        {"reply_mb": 300},
        {"batch": 8},
    )  # as many as the bundle allows: its manifest tells the plan
    with running(tone_bundle, limits=limits, engine=engine) as daemon:
        plan = daemon.request({"op": "status", "memory": True})["memory"]
    replies_mb = sum(row["mb"] for row in plan if row["kind"] == "bound")
    voice_mb = sum(row["mb"] for row in plan) - replies_mb
    service = {"memory_mb": round(replies_mb + 1.5 * voice_mb)}
    with running(tone_bundle, limits=limits, engine=engine, service=service) as daemon:
        daemon.configure(voices={"bundles": [str(build("tone", tmp_path / "b", name="b"))]})
        reply = daemon.request({"op": "reload"})
        assert (reply["event"], reply["code"], reply["retryable"]) == ("failed", "restart_needed", False)
        assert "restart" in reply["hint"]
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        daemon.stop()
        daemon.start()


def test_a_stop_while_jobs_of_former_voices_speak_drains_them(slow_bundle: Path, tone_bundle: Path) -> None:
    with (
        running(slow_bundle, service={"warmup": False, "drain_s": 90.0}) as daemon,
        daemon.socket() as socket,
    ):
        send(socket, op="synthesize", text=LONG, id="old", reply="events", stream=True)
        receive_until(socket, "started")
        daemon.configure(voices={"bundles": [str(tone_bundle)]})
        assert daemon.request({"op": "reload"})["event"] == "reload_reply"
        daemon.process.send_signal(signal.SIGTERM)
        assert receive_until(socket, "done", "failed", "cancelled")[-1]["event"] == "done"
        assert daemon.process.wait(60) == 0


def test_no_job_is_lost_or_answered_twice_over_many_reloads(tone_bundle: Path, tmp_path: Path) -> None:
    """Jobs all the time; every reload brings the other of two versions, or other limits."""
    place = Store(tmp_path / "bundles")
    second = tmp_path / "second"
    shutil.copytree(tone_bundle, second)
    write_manifest(second, msgspec.structs.replace(read_manifest(second), version="second"))
    versions = [install(place, tone_bundle).name, install(place, second).name]
    place.switch("tone", versions[0])
    env = {"EDGED_BUNDLES": str(place.directory)}
    with running("tone", env=env) as daemon, daemon.socket() as socket, daemon.socket() as control:
        sent, endings, replies = 0, Counter[str](), []
        for number in range(20):
            if number % 4 == 3:
                daemon.configure(limits={"jobs": 100 + number})
            else:
                place.switch("tone", versions[number % 2])
            send(control, op="reload", id=str(number))
            while len(replies) <= number:
                send(socket, op="synthesize", text=SENTENCE, id=str(sent), reply="events")
                sent += 1
                while socket.poll(5):
                    event = receive(socket)
                    if event["event"] in ("done", "failed", "cancelled"):
                        assert event["event"] == "done", event
                        endings[event["id"]] += 1
                if control.poll(0):
                    replies.append(receive(control))
        while len(endings) < sent:
            event = receive(socket)
            if event["event"] == "done":
                endings[event["id"]] += 1
        assert not socket.poll(100)
        assert set(endings.values()) == {1}
        assert len(endings) == sent
        assert {r["event"] for r in replies} == {"reload_reply"}, replies
        assert sum(bool(r["loaded"]) for r in replies) >= 8
        stats = daemon.request({"op": "stats"})
        assert (stats["done"], stats["failed"]) == (sent, {})
        assert daemon.stop() == 0


# -- the command line ------------------------------------------------------------------------------


def edged(
    daemon: Daemon, place: Store, *arguments: str, bundles: str = ""
) -> subprocess.CompletedProcess[str]:
    """bundles: directories, where there are more than the store."""
    env = {**os.environ, "EDGED_BUNDLES": bundles or str(place.directory)}
    env["EDGED_CONFIG"] = str(daemon.config)
    env["EDGED_ENDPOINT"] = daemon.endpoint
    command = [sys.executable, "-m", "edged", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)


def test_install_activate_and_roll_back_with_a_daemon(tone_bundle: Path, tmp_path: Path) -> None:
    place = Store(tmp_path / "bundles")
    shutil.copytree(tone_bundle, place.directory / "tone")  # as `edged bundle build` leaves it
    second = tmp_path / "second"
    shutil.copytree(tone_bundle, second)
    write_manifest(second, msgspec.structs.replace(read_manifest(second), version="second"))
    with running("tone", env={"EDGED_BUNDLES": str(place.directory)}) as daemon:
        installed = edged(daemon, place, "bundle", "install", str(second), "--json")
        name = json.loads(installed.stdout)["installed"]
        used = edged(daemon, place, "bundle", "activate", name)
        assert used.returncode == 0, used.stderr
        assert "speaks with it now" in used.stdout
        assert "heard: tone" in used.stdout
        listed = json.loads(edged(daemon, place, "bundle", "list", "--json").stdout)["bundles"]
        assert {e["role"] for e in listed} == {"", "current", "previous"}
        back = edged(daemon, place, "bundle", "rollback", "tone", "--json")
        told = json.loads(back.stdout)
        assert (told["previous"], told["daemon"]) == (name, "speaks with it now")
        assert daemon.request({"op": "reload"})["bundles"]["tone"].endswith(told["current"])

        # One that the trial refuses changes nothing.
        golden = read_manifest(second).golden
        assert golden is not None
        worse = msgspec.structs.replace(golden, samples=1)
        write_manifest(second, msgspec.structs.replace(read_manifest(second), version="bad", golden=worse))
        bad = json.loads(edged(daemon, place, "bundle", "install", str(second), "--json").stdout)
        refused = edged(daemon, place, "bundle", "activate", bad["installed"])
        assert refused.returncode == 1
        assert "[engine]" in refused.stderr
        assert place.current("tone") == told["current"]

        # One that the daemon refuses is taken back.
        daemon.config.write_text("limits: {jobs: many}")
        kept = edged(daemon, place, "bundle", "activate", "--no-trial", name)
        assert kept.returncode == 2
        assert f"{told['current']} is in use again" in kept.stderr
        assert (place.current("tone"), place.previous("tone")) == (told["current"], name)
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        pruned = edged(daemon, place, "bundle", "prune")
        assert pruned.stdout.split() == ["deleted", bad["installed"]]


def test_the_bundle_of_the_installation_is_the_one_before_the_first_version(
    tone_bundle: Path, tmp_path: Path
) -> None:
    place = Store(tmp_path / "bundles")
    shipped = tmp_path / "release" / "tone"
    shutil.copytree(tone_bundle, shipped)
    bundles = f"{place.directory}:{shipped.parent}"
    new = install(place, tone_bundle).name
    with running("tone", env={"EDGED_BUNDLES": bundles}) as daemon:

        def loaded() -> str:
            return str(daemon.request({"op": "reload"})["bundles"]["tone"])

        assert loaded() == str(shipped)
        for arguments, wanted in (
            (("activate", "--no-trial", new), place.directory / new),
            (("rollback", "tone"), shipped),
            (("rollback", "tone"), place.directory / new),
        ):
            done = edged(daemon, place, "bundle", *arguments, bundles=bundles)
            assert "speaks with it now" in done.stdout, done.stderr
            assert loaded() == str(wanted)
        engine = next((place.directory / new / "engines").iterdir())
        engine.write_bytes(engine.read_bytes()[:-1])
        daemon.stop()
        daemon.start()
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        assert "the version before speaks instead" in daemon.log


def test_a_bundle_that_takes_the_daemon_down_is_taken_back(tone_bundle: Path, tmp_path: Path) -> None:
    place = Store(tmp_path / "bundles")
    slow = build("tone", tmp_path / "slow", work=400, name="tone")  # its warm-up leaves time for the kill
    good, new = install(place, tone_bundle).name, install(place, slow).name
    place.switch("tone", good)
    with running("tone", env={"EDGED_BUNDLES": str(place.directory)}) as daemon:
        with ThreadPoolExecutor(1) as pool:
            used = pool.submit(edged, daemon, place, "bundle", "activate", "--no-trial", new)
            logged(daemon, "reload asked for")
            daemon.process.kill()
        assert used.result().returncode == 1
        assert "[bundle_trial_failed]" in used.result().stderr
        assert f"{good} is in use again" in used.result().stderr
        assert place.current("tone") == good
        # Nobody answers: what is in use is for the next start.
        daemon.process.wait()
        told = edged(daemon, place, "bundle", "activate", "--no-trial", new)
        assert "when it starts" in told.stdout
        assert place.current("tone") == new


def test_a_pipe_as_configuration_is_refused_and_the_next_reload_works(
    tone_bundle: Path, tmp_path: Path
) -> None:
    with running(tone_bundle) as daemon:
        text = daemon.config.read_text()
        daemon.config.unlink()
        os.mkfifo(daemon.config)
        reply = daemon.request({"op": "reload"})
        assert (reply["event"], reply["code"]) == ("failed", "config")
        assert "regular file" in reply["message"]
        daemon.config.unlink()
        daemon.config.write_text(text)
        assert daemon.request({"op": "reload"})["event"] == "reload_reply"


def test_the_wait_for_a_reload_has_an_end(tone_bundle: Path, tmp_path: Path) -> None:
    slow = build("tone", tmp_path / "slow", work=400, name="tone")
    with running(tone_bundle) as daemon, Client(daemon.endpoint) as client:
        daemon.configure(voices={"bundles": [str(slow)]})
        with pytest.raises(ReplyTimeout, match="within"):
            client.reload(within_s=0.05)
        client.ping()  # it is not the daemon that is silent


def test_a_reload_that_a_stop_does_not_wait_for_is_answered() -> None:
    begun, go_on = threading.Event(), threading.Event()
    answers: list[protocol.Event] = []

    def act() -> protocol.ReloadReply:
        begun.set()
        go_on.wait()
        return protocol.ReloadReply(changed=[], restart=[], loaded=[], bundles={})

    reloader = Reloader(act, lambda: None, lambda exc: pytest.fail(str(exc)))
    reloader.start()
    reloader.ask(answers.append)
    begun.wait()
    reloader.ask(answers.append)
    reloader.stop(0.05)
    assert not reloader.ended
    codes = [getattr(answer, "code", "") for answer in answers]
    assert codes == ["shutting_down"] * 2
    go_on.set()
    reloader.stop(10.0)
    assert reloader.ended
    assert len(answers) == 2, "answered once"


def test_reload_from_the_command_line(tone_bundle: Path, tmp_path: Path) -> None:
    with running(tone_bundle) as daemon:
        daemon.configure(limits={"jobs": 7, "reply_mb": 32})
        done = edged(daemon, Store(tmp_path), "reload")
        assert done.returncode == 0, done.stderr
        assert "limits.jobs" in done.stdout
        assert "limits.reply_mb" in done.stderr
        daemon.configure(limits={"jobs": 0})
        failed = edged(daemon, Store(tmp_path), "reload")
        assert failed.returncode == 2
        assert "limits.jobs" in failed.stderr
        assert load(None).limits.jobs


# -- a start with a version that cannot be used -----------------------------------------------------


def test_a_start_falls_back_when_the_new_version_lacks_the_voice_that_is_wanted(
    tone_bundle: Path, tmp_path: Path
) -> None:
    place = Store(tmp_path / "bundles")
    second = tmp_path / "second"
    shutil.copytree(tone_bundle, second)
    manifest = read_manifest(second)
    voices = (msgspec.structs.replace(manifest.voices[0], name="other"),)
    write_manifest(second, msgspec.structs.replace(manifest, version="second", voices=voices))
    place.switch("tone", install(place, tone_bundle).name)
    place.switch("tone", install(place, second).name)
    env = {"EDGED_BUNDLES": str(place.directory)}
    with running("tone", env=env, voices={"default": "tone"}) as daemon:
        assert [v["name"] for v in daemon.request({"op": "voices"})["voices"]] == ["tone"]
        assert "voices.default 'tone' is in none" in daemon.log


def test_a_start_falls_back_to_the_version_before(tone_bundle: Path, tmp_path: Path) -> None:
    place = Store(tmp_path / "bundles")
    second = tmp_path / "second"
    shutil.copytree(tone_bundle, second)
    write_manifest(second, msgspec.structs.replace(read_manifest(second), version="second"))
    good, new = install(place, tone_bundle), install(place, second)
    place.switch("tone", good.name)
    place.switch("tone", new.name)
    engine = next((new / "engines").iterdir())
    whole = engine.read_bytes()
    engine.write_bytes(whole[:-1])
    with running("tone", env={"EDGED_BUNDLES": str(place.directory)}) as daemon:
        assert daemon.request({"op": "synthesize", "text": SENTENCE})["event"] == "done"
        assert "the version before speaks instead" in daemon.log
        assert daemon.request({"op": "reload"})["code"] == "bundle_file_truncated"
        engine.write_bytes(whole)
        assert daemon.request({"op": "reload"})["bundles"] == {"tone": str(new.resolve())}
        assert place.current("tone") == new.name, "the daemon changes nothing in the store"


def test_every_problem_of_a_refused_configuration_has_a_line_of_its_own(tone_bundle: Path) -> None:
    with running(tone_bundle) as daemon:
        daemon.configure(audio={"volume": 99}, log={"level": "loud"})
        assert daemon.request({"op": "reload"})["code"] == "config"
        until = time.monotonic() + 10  # a thread of its own writes them
        while daemon.log.count("reload refused") < 3 and time.monotonic() < until:
            time.sleep(0.02)
        told = [line for line in daemon.log.splitlines() if "reload refused" in line]
        assert "\\n" not in "".join(told)
        for setting in ("audio.volume", "log.level"):
            assert [line for line in told if setting in line and "code=config" in line]
