"""What the watchdog does at each stage, with memory, threads and systemd played by the test."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from edged.errors import PlanTooLarge
from edged.footprint import Usage
from edged.pressure import Rules
from edged.threads import Pulse
from edged.watchdog import SAMPLE_S, STUCK_S, Watchdog

BUDGET = 1000.0


@dataclass
class Manager:
    watchdog_interval_s: float | None = None
    fed: int = 0
    said: list[str] = field(default_factory=list)

    def watchdog(self) -> bool:
        self.fed += 1
        return True

    def status(self, text: str) -> bool:
        self.said.append(text)
        return True


@dataclass
class Clients:
    over_budget: str = ""
    tickets: dict[str, Any] = field(default_factory=lambda: {"a-1": None, "a-2": None})


class Stuck(Pulse):
    """A thread that has been busy for a time of the test's choosing."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def busy_s(self, now: float) -> float:
        return self.seconds


class Box:
    """A watchdog and what is around it; `spend` lets seconds pass at a memory."""

    def __init__(self, interval_s: float | None = None, gives_mb: float = 0.0, **rules: float) -> None:
        self.manager, self.clients, self.engine = Manager(interval_s), Clients(), Stuck()
        self.now, self.mb, self.trims = 1000.0, 0.0, 0
        self.asked: list[float] = []
        self._gives_mb = gives_mb
        self.dog = Watchdog(
            BUDGET,
            Rules(**rules),
            self.manager,
            self._measure,
            [self._give],
            self.clients,  # type: ignore[arg-type]
        )
        self.dog.watch(lambda: {"engine": self.engine}, lambda: "ready: ada")

    def _measure(self, enough_below_mb: float) -> Usage:
        self.asked.append(enough_below_mb)
        return Usage(self.mb)

    def _give(self) -> None:
        self.trims += 1
        self.mb -= self._gives_mb

    def spend(self, seconds: int, mb: float | None = None) -> None:
        self.mb = self.mb if mb is None else mb
        for _ in range(seconds):
            self.dog.tick(self.now)
            self.now += SAMPLE_S


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str, dict[str, Any]]]:
    return [(r.levelno, r.getMessage(), r.__dict__["fields"]) for r in caplog.records]


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "edged")


def test_each_stage_is_one_line_with_its_numbers(caplog: pytest.LogCaptureFixture) -> None:
    box = Box(lasting_s=5.0)
    box.spend(20, 500.0)
    assert lines(caplog) == []
    box.spend(20, 810.0)
    box.spend(6, 910.0)
    told = [(level, fields.get("code")) for level, _, fields in lines(caplog)]
    assert told == [(logging.WARNING, "memory_high"), (logging.ERROR, "over_budget"), (logging.INFO, None)]
    box.spend(20, 910.0)
    assert [level for level, _, _ in lines(caplog)].count(logging.CRITICAL) == 1
    for _, _, fields in lines(caplog):
        assert fields["budget_mb"] == BUDGET
        assert fields["percent"] == pytest.approx(fields["used_mb"] / 10)
    assert lines(caplog)[1][2]["jobs"] == 2


def test_jobs_are_refused_while_it_is_full_and_taken_again_later(caplog: pytest.LogCaptureFixture) -> None:
    box = Box()
    box.spend(3, 950.0)
    assert "950 of 1000 MB" in box.clients.over_budget
    assert "950 of 1000 MB" in box.manager.said[-1]
    assert box.dog.state == "full"
    box.spend(5, 870.0)
    assert box.clients.over_budget
    box.spend(3, 840.0)
    assert (box.clients.over_budget, box.dog.state) == ("", "high")
    assert box.manager.said[-1].startswith("ready: ada")
    box.spend(3, 100.0)
    assert (box.dog.state, box.manager.said[-1]) == ("ok", "ready: ada")
    assert not box.dog.leave


def test_the_status_is_that_of_the_moment_whoever_tells_it() -> None:
    box = Box(lasting_s=0.0)
    assert box.dog.told() == "ready: ada"
    box.spend(3, 850.0)
    assert box.dog.told() == "ready: ada; memory is high: 850 of 1000 MB"
    box.spend(3, 950.0)
    assert box.dog.told() == "refusing new jobs: memory 950 of 1000 MB"
    box.engine.seconds = 20.0
    box.spend(1)
    assert box.dog.told() == "stuck: engine"
    box.engine.seconds = 0.0
    box.spend(4, 100.0)
    assert box.dog.told() == "ready: ada"


def test_what_is_given_back_can_be_enough(caplog: pytest.LogCaptureFixture) -> None:
    box = Box(gives_mb=300.0)
    box.spend(3, 950.0)
    (trimmed,) = [fields for _, text, fields in lines(caplog) if text == "memory trimmed"]
    assert (trimmed["before_mb"], trimmed["used_mb"]) == (950.0, 650.0)
    box.spend(60)
    assert (box.trims, box.dog.state, box.dog.leave) == (1, "ok", False)


def test_when_it_lasts_it_wants_to_leave_and_says_why() -> None:
    box = Box(lasting_s=10.0)
    box.spend(12, 950.0)
    assert not box.dog.leave
    box.spend(2)
    assert box.dog.leave
    assert "950 MB" in box.manager.said[-1]


def test_exact_figures_are_asked_for_only_where_they_matter() -> None:
    box = Box()
    box.spend(3, 500.0)
    assert set(box.asked) == {750.0}
    box.spend(3, 950.0)
    box.asked.clear()
    box.spend(3, 500.0)
    assert set(box.asked) == {0.0}


def test_a_service_without_room_does_not_start_and_says_how_much_it_needs() -> None:
    box = Box()
    box.mb = 920.0
    with pytest.raises(PlanTooLarge) as caught:
        box.dog.check_room()
    assert "920 MB" in caught.value.message
    assert "service.memory_mb to 1150" in caught.value.hint
    assert box.trims == 1


def test_a_service_that_fits_once_it_is_trimmed_starts() -> None:
    box = Box(gives_mb=100.0)
    box.mb = 920.0
    box.dog.check_room()
    assert box.dog.used_mb == 820.0


def test_what_voices_have_on_the_gpu_must_fit_beside_the_process() -> None:
    box = Box()
    box.mb = 500.0
    box.dog.check_room(399.0)
    assert box.dog.used_mb == 899.0
    with pytest.raises(PlanTooLarge, match="takes 901 MB") as caught:
        box.dog.check_room(401.0)
    assert "service.memory_mb to 1127" in caught.value.hint


@pytest.mark.parametrize("interval_s", [0.5, 1.0, 2.5, 15.0])
def test_systemd_is_fed_in_time_while_threads_get_on(interval_s: float) -> None:
    """Woken when `wait_s` says, and never late."""
    box = Box(interval_s)
    last, until = box.now, box.now + 60.0
    while box.now < until:
        fed = box.manager.fed
        box.dog.tick(box.now)
        if box.manager.fed > fed:
            assert box.now - last <= interval_s + 1e-6
            last = box.now
        wait = box.dog.wait_s(box.now)
        assert 0.0 < wait <= SAMPLE_S
        box.now += wait
    assert box.manager.fed == pytest.approx(60.0 / interval_s, abs=2)


def test_without_a_manager_it_wakes_once_a_second() -> None:
    box = Box()
    box.dog.tick(box.now)
    assert box.dog.wait_s(box.now) == SAMPLE_S
    assert box.manager.fed == 0


@pytest.mark.parametrize("interval_s", [2.0, None])
def test_a_stuck_thread_ends_the_feeding_and_is_told_once(
    caplog: pytest.LogCaptureFixture, interval_s: float | None
) -> None:
    box = Box(interval_s)
    box.spend(10, 10.0)
    fed = box.manager.fed
    box.engine.seconds = (interval_s or STUCK_S) + 1.0
    box.spend(30)
    assert box.manager.fed == fed
    ((level, _, fields),) = lines(caplog)
    assert (level, fields["code"], fields["threads"]) == (logging.CRITICAL, "stuck", "engine")
    assert fields["busy_s"] == box.engine.seconds
    assert box.manager.said == ["stuck: engine"]
    box.engine.seconds = 0.0
    box.spend(3)
    assert box.manager.said[-1] == "ready: ada"
    assert len(lines(caplog)) == 2
    assert (box.manager.fed > fed) == (interval_s is not None)
