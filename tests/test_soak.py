"""tools/soak: it runs to its end on a real daemon, and it notices what it is there for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
import zmq

from edged import protocol
from edged.bundle_write import write_manifest
from edged.manifest import read_manifest

TOOLS = Path(__file__).parents[1] / "tools"
sys.path.insert(0, str(TOOLS))
from soaking import clients, kills, report  # noqa: E402
from soaking.clients import Asked, Load  # noqa: E402
from soaking.exchanges import CHANGES, OUTAGES, RESTARTING, Exchanges  # noqa: E402
from soaking.memory import slope  # noqa: E402
from soaking.rig import Outage, Outcome, Rig  # noqa: E402


def soak(*arguments: object) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, str(TOOLS / "soak"), "--voice", "tone", "--json", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


def test_changes_under_load_lose_nothing() -> None:
    code, told = soak("--exchanges", 4, "--clients", 4, "--idle", 2)
    assert (code, told["faults"]) == (0, [])
    load = told["load"]
    assert load["lost"] == load["twice"] == load["interrupted"] == 0
    assert load["answered"] + load["left"] == load["jobs"]
    assert load["outcomes"]["done"] > 10
    assert load["first_audio_s"]["p50"] > 0
    assert told["library"]["outcomes"]["done"] > 0
    assert told["changes"]["exchanges"] >= 4
    assert told["restarts"] == 0
    assert 0 < told["idle"]["idle_wakeups_s"] < 20
    assert told["memory"]["highest_pss_mb"] > 20


@pytest.fixture(scope="module")
def rig(tone_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    made = Rig(tmp_path_factory.mktemp("soak"), str(tone_bundle))
    made.start()
    yield made
    made.close()


def test_interrupted_by_kill_9_at_any_instant_store_and_daemon_work(rig: Rig) -> None:
    seen = kills.loop(rig, 4, seed=5, say=lambda _: None)
    assert seen.faults == []
    assert seen.interrupted == 4
    assert seen.commands + seen.daemons > 0
    assert sum(seen.states.values()) == seen.rounds


def test_a_kill_is_an_outage_from_which_it_recovers(rig: Rig) -> None:
    made = Exchanges(rig, seed=1)
    before, outages = rig.pid, len(rig.outages)
    made.step(["kill"])
    assert made.faults == []
    assert rig.pid != before
    assert len(rig.outages) == outages + 1
    (recovery_s,) = made.recovery_s
    assert 1.0 < recovery_s < 30.0


def test_memory_that_gets_short_is_refused_and_given_back(rig: Rig) -> None:
    made = Exchanges(rig, seed=1)
    made.step(["pressure"])
    assert made.faults == []
    assert len(made.pressure) == 3


@pytest.mark.parametrize("kind", ["bad_config", "bad_bundle", "prune"])
def test_each_change_ends_as_it_must(rig: Rig, kind: str) -> None:
    made = Exchanges(rig, seed=2)
    made.step([kind])
    assert made.faults == []
    assert made.counts == {kind: 1}


def test_a_store_that_leads_to_a_damaged_bundle_is_told(rig: Rig) -> None:
    current = rig.store.directory / rig.store.current(rig.name)
    manifest = read_manifest(current)
    assert rig.unsound() == ""
    (current / "LICENSE").rename(current / "aside")
    try:
        engine = current / manifest.engines[0].file
        whole = engine.read_bytes()
        engine.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert "the content was changed" in rig.unsound()
        engine.write_bytes(whole)
    finally:
        (current / "aside").rename(current / "LICENSE")
        write_manifest(current, manifest)
    assert rig.unsound() == ""


class Refusing:
    """A rig whose commands end with a code."""

    name = "tone"

    def __init__(self, code: int) -> None:
        self._code = code

    def run(self, *arguments: str) -> Outcome:
        return Outcome(self._code, 0.1, {}, "no")

    standstills: tuple[Outage, ...] = ()

    def unsound(self) -> str:
        return ""


@pytest.mark.parametrize(("code", "faults", "again"), [(0, 0, 0), (5, 0, 1), (1, 1, 0)])
def test_a_change_that_ends_otherwise_is_a_fault(code: int, faults: int, again: int) -> None:
    made = Exchanges(Refusing(code), seed=1)  # type: ignore[arg-type]
    made.step(["reload"])
    assert (len(made.faults), made.try_again) == (faults, again)


def test_a_short_run_has_some_of_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in {*CHANGES, *RESTARTING}:
        monkeypatch.setattr(Exchanges, f"_{kind}", lambda _: None)  # which fails for one that is not there
    made = Exchanges(Refusing(1), seed=1)  # type: ignore[arg-type]
    for kinds in (RESTARTING, CHANGES):
        made.counts.clear()
        for _ in range(2 * len(kinds)):
            made.step(kinds)
        assert set(made.counts) >= set(kinds)
    assert set(OUTAGES) <= set(RESTARTING)


# -- what becomes of a job --------------------------------------------------------------------------


@contextmanager
def answering(endpoint: str, endings: Callable[[], int]) -> Iterator[None]:
    """A daemon that ends every job so many times, as it is expected to end."""
    stopping = threading.Event()
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.linger = 0
    socket.bind(endpoint)

    def serve() -> None:
        while not stopping.is_set():
            if not socket.poll(20):
                continue
            *envelope, header = socket.recv_multipart()
            request = json.loads(header)
            if request["op"] == "cancel":
                continue
            done = protocol.Done(id=request["id"], audio_s=1.0, synthesis_s=0.1, rtf=0.1, first_audio_ms=1.0)
            for _ in range(endings()):
                socket.send_multipart([*envelope, protocol.encode(done)])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        context.destroy(linger=0)


@dataclass
class Times:
    outages: list[Outage]
    standstills: list[Outage] = field(default_factory=list)


def loaded(endpoint: str, outages: list[Outage], seconds: float) -> dict[str, Any]:
    load = Load(endpoint, outages, clients=4, seed=3)
    load.start()
    sleep(seconds)
    asked = load.stop(drain_s=1.0)
    stray = [text for person in load.people for text in person.stray]
    return report.jobs(asked, stray, Times(outages), monotonic())


@pytest.mark.parametrize("endings", [0, 1, 2])
def test_it_counts_the_endings_of_every_job(tmp_path: Path, endings: int) -> None:
    endpoint = f"ipc://{tmp_path}/d.sock"
    with answering(endpoint, lambda: endings):
        told = loaded(endpoint, [], 2.0)
    stayed = told["jobs"] - told["left"]
    assert stayed >= 4
    assert (told["lost"], told["answered"]) == ((stayed, 0) if endings == 0 else (0, stayed))
    # A client that leaves does not see the second answer; what it has seen before it left counts.
    assert (told["twice"] > 0) == (len(told["stray"]) > 0) == (endings == 2)
    faults = list(report.job_faults({**told, "unexpected": {}}))
    assert bool(faults) == (endings != 1)


def test_what_was_under_way_at_an_outage_is_given_up_and_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "GIVE_UP_S", 0.2)
    endpoint, begin = f"ipc://{tmp_path}/d.sock", monotonic()
    outage = Outage(begin, begin + 1.5)
    with answering(endpoint, lambda: int(monotonic() > outage.end)):
        told = loaded(endpoint, [outage], 3.0)
    assert told["interrupted"] > 0
    assert told["lost"] == told["twice"] == 0
    assert told["outcomes"]["done"] > 0


def test_an_answer_after_it_was_given_up_is_not_lost_but_a_second_one_is_twice() -> None:
    outages = [Outage(1.0, 2.0)]
    late = Asked(
        "a", 0.5, interrupted=True, endings=1, ended=20.0, outcome="done", expected=frozenset({"done"})
    )
    gone = Asked("b", 0.5, interrupted=True)
    twice = Asked(
        "c", 0.5, interrupted=True, endings=2, ended=20.0, outcome="done", expected=frozenset({"done"})
    )
    lost = Asked("d", 5.0)
    told = report.jobs([late, gone, twice, lost], [], Times(outages), 30.0)
    assert (told["late"], told["interrupted"], told["twice"], told["lost"]) == (1, 1, 1, 1)


# -- memory -----------------------------------------------------------------------------------------


def test_a_leak_is_told_from_noise() -> None:
    chance = np.random.default_rng(4)
    seconds = np.arange(150.0)
    wrong = 0
    for _ in range(200):
        flat = 160_000 + chance.normal(0, 50, seconds.size)
        found = slope(list(zip(seconds, flat, strict=True)))
        assert found is not None
        wrong += found.grows
        leaking = slope(list(zip(seconds, flat + 3 * seconds, strict=True)))
        assert leaking is not None
        assert leaking.grows
        assert abs(leaking.kb_per_min - 180) < 50
    assert wrong < 15, "one in forty is wrong by chance"


def test_a_walk_without_a_direction_is_no_slope() -> None:
    """Heaps grow and are trimmed by steps. A few readings of that look like a slope more often than those
    of noise do, but not often; a leak of the same size as its steps is found behind it."""
    chance = np.random.default_rng(5)
    seconds = np.arange(0, 175, 2.5)
    wrong = found = 0
    for _ in range(300):
        walk = 160_000 + np.cumsum(chance.normal(0, 300, seconds.size)) + chance.normal(0, 300, seconds.size)
        flat, leaking = (slope(list(zip(seconds, walk + kb * seconds, strict=True))) for kb in (0, 200))
        assert flat is not None
        assert leaking is not None
        wrong += flat.grows
        found += leaking.grows
    assert wrong < 30
    assert found > 290


@pytest.mark.parametrize("at", [40, 75, 110])
def test_one_step_that_lasts_is_no_slope(at: int) -> None:
    """Memory that a heap takes once, and keeps: the line through it is steep, and says nothing."""
    seconds = np.arange(150.0)
    noise = np.random.default_rng(at).normal(0, 20, seconds.size)
    found = slope(list(zip(seconds, 160_000 + 500.0 * (seconds >= at) + noise, strict=True)))
    assert found is not None
    assert not found.grows


def test_too_few_readings_say_nothing() -> None:
    assert slope([(float(n), 1.0) for n in range(5)]) is None
    assert slope([(1.0, float(n)) for n in range(50)]) is None


def test_a_rig_restarts_after_its_daemon_was_stopped(rig: Rig) -> None:
    with rig.outage(signal.SIGTERM):
        assert rig.died
    assert rig.first_audio() < float("inf")
