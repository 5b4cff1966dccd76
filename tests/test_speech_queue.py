"""The speech queue: its invariants over random sequences of calls, and what each option does."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from edged.errors import Busy
from edged.job import Priority
from edged.settings import ClientDefaults, Speech
from edged.speech.actions import Action, Begin, Drop, Pause, Resume
from edged.speech.options import Wish, promoted, wish
from edged.speech.queue import SpeechQueue
from edged.speech.rules import interrupts, replaces

LIMIT = 3
PROGRESS_S = 1.5
wishes = st.builds(
    lambda client, priority, options: plain(priority, client, **options),
    st.sampled_from("ab"),
    st.sampled_from(Priority),
    st.fixed_dictionaries(
        {},
        optional={
            "interrupt": st.booleans(),
            "queue": st.sampled_from(["last", "next"]),
            "replace": st.sampled_from(["none", "own"]),
            "drop_if_busy": st.booleans(),
            "expires_ms": st.integers(1, 3_000),
            "after_interrupt": st.sampled_from(["resume", "restart", "drop"]),
        },
    ),
)


def plain(priority: Priority = Priority.TEXT, client: str = "a", **options: Any) -> Wish:
    return wish(client, 0, ClientDefaults(priority=priority.name.lower(), **options), ClientDefaults())


class Machine(RuleBasedStateMachine):
    """Carries the actions out as a player would, and knows from them alone what became of each job."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: SpeechQueue[int] = SpeechQueue(Speech(waiting_per_client=LIMIT, progress_s=PROGRESS_S))
        self.now = 0.0
        self.wishes: dict[int, Wish] = {}
        self.came: dict[int, float] = {}
        self.state: dict[int, str] = {}  # waiting, writing, written, paused, ended
        self.how: dict[int, str] = {}  # how a paused one goes on
        self.is_ready: set[int] = set()
        self.held: set[int] = set()
        self.blocked: set[int] = set()  # those that another one was heard before

    def do(self, actions: tuple[Action[int], ...], holding: tuple[int, ...] = ()) -> None:
        for action in actions:
            key, state = action.key, self.state[action.key]
            if isinstance(action, Begin):
                assert state == "waiting"
                assert key in self.is_ready
                assert self.wishes[key].priority <= self.best_ready()
                self.begin(key)
            elif isinstance(action, Resume):
                assert state == "paused"
                assert action.how == self.how.pop(key)
                assert self.wishes[key].priority <= self.best_ready()
                self.begin(key)
            elif isinstance(action, Pause):
                assert state in ("writing", "written")
                assert key in holding or self.wishes[key].priority is not Priority.IMPORTANT
                self.state[key] = "paused"
                self.how[key] = "exact" if key in holding else self.after(key)
                assert self.how[key] != "drop"
            else:
                self.drop(key, action.reason)

    def begin(self, key: int) -> None:
        assert key not in self.held
        assert "writing" not in self.state.values()
        self.state[key] = "writing"
        self.blocked |= {k for k, state in self.state.items() if state == "waiting"}

    def drop(self, key: int, reason: str) -> None:
        wanted, state = self.wishes[key], self.state[key]
        assert state != "ended"
        if reason == "expired":
            assert state == "waiting"
            assert wanted.expires_s is not None
            assert self.now >= self.came[key] + wanted.expires_s
        elif reason == "interrupted":
            assert state in ("writing", "written")
            assert self.after(key) == "drop"
            assert wanted.priority is not Priority.IMPORTANT
        elif reason == "busy":
            assert state == "waiting"
            assert wanted.drop_if_busy
        else:
            assert reason == "replaced"
            newest = max(self.wishes)
            assert newest > key
            assert self.wishes[newest].owner == wanted.owner
            assert self.wishes[newest].replace == "own"
        self.state[key] = "ended"

    def after(self, key: int) -> str:
        return self.wishes[key].after_interrupt

    def best_ready(self) -> Priority:
        """The highest class of those that could begin."""
        return min((self.wishes[k].priority for k in self.able()), default=Priority.PROGRESS)

    def able(self) -> set[int]:
        waiting = {k for k, state in self.state.items() if state == "waiting" and k in self.is_ready}
        return (waiting | {k for k, state in self.state.items() if state == "paused"}) - self.held

    def look_now(self) -> tuple[Action[int], ...]:
        """A progress that could not be heard when it came is a message from its time on."""
        for key in self.blocked:
            wanted, due = self.wishes[key], self.came[key] + PROGRESS_S <= self.now
            if due and self.state[key] == "waiting" and wanted.priority is Priority.PROGRESS:
                self.wishes[key] = promoted(wanted)
        actions = self.queue.look(self.now)
        self.do(actions)
        return actions

    # -- calls ----------------------------------------------------------------------------------

    @rule(wanted=wishes, seconds=st.floats(0, 1), at_once=st.booleans())
    def add(self, wanted: Wish, seconds: float, at_once: bool) -> None:
        self.look(seconds)
        key = len(self.wishes)
        heard = [k for k in self.queue.current if not replaces(wanted, self.wishes[k])]
        before = (self.queue.current, self.queue.paused, self.queue.waiting, self.queue.upcoming())
        try:
            actions = self.queue.add(key, wanted, self.now)
        except Busy:
            mine = [k for k in (*before[1], *before[2]) if self.wishes[k].owner == wanted.owner]
            assert len(mine) >= LIMIT
            now = (self.queue.current, self.queue.paused, self.queue.waiting, self.queue.upcoming())
            assert now == before
            self.wishes[key] = wanted  # its number is used up
            self.state[key] = "ended"
            return
        self.wishes[key], self.came[key], self.state[key] = wanted, self.now, "waiting"
        self.blocked |= {key} if heard else set()
        self.do(actions)
        if wanted.drop_if_busy and key in self.queue.waiting:
            assert self.queue.current == self.queue.paused == ()
            assert self.queue.waiting == (key,)
        if at_once:
            self.ready(key)

    def some(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.wishes)))

    @precondition(lambda self: self.wishes)
    @rule(data=st.data())
    def becomes_ready(self, data: st.DataObject) -> None:
        self.ready(self.some(data))

    def ready(self, key: int) -> None:
        self.is_ready.add(key)
        self.do(self.queue.ready(key))

    @precondition(lambda self: "writing" in self.state.values())
    @rule()
    def becomes_written(self) -> None:
        key = next(k for k, state in self.state.items() if state == "writing")
        self.state[key] = "written"
        self.do(self.queue.written(key))

    @precondition(lambda self: self.wishes)
    @rule(data=st.data())
    def ends(self, data: st.DataObject) -> None:
        key = self.some(data)
        self.state[key] = "ended"
        self.do(self.queue.ended(key))

    @precondition(lambda self: self.queue.current)
    @rule()
    def was_heard(self) -> None:
        key = self.queue.current[0]
        self.state[key] = "ended"
        self.do(self.queue.ended(key))

    @rule(client=st.sampled_from("ab"))
    def client_stops(self, client: str) -> None:
        keys = [k for k, wanted in self.wishes.items() if wanted.client == client]
        self.state.update(dict.fromkeys(keys, "ended"))
        actions = self.queue.stop(keys)
        assert not {action.key for action in actions} & set(keys)
        self.do(actions)

    @precondition(lambda self: self.wishes)
    @rule(data=st.data(), count=st.integers(1, 3))
    def people_hold(self, data: st.DataObject, count: int) -> None:
        keys = tuple(self.some(data) for _ in range(count))
        self.held |= {k for k in keys if self.state[k] != "ended"}
        self.do(self.queue.hold(keys), holding=keys)
        assert not set(keys) & set(self.queue.current)

    @rule(everything=st.booleans())
    def people_release(self, everything: bool) -> None:
        keys = sorted(self.held) if everything else sorted(self.held)[:1]
        self.held -= set(keys)
        self.do(self.queue.release(keys))

    @rule(seconds=st.floats(0, 5))
    def look(self, seconds: float) -> None:
        self.now += seconds
        self.look_now()

    @rule()
    def wait_for_the_next_look(self) -> None:
        pause_s = self.queue.next_look(self.now)
        if pause_s is not None:
            self.now += pause_s + 1e-6
            self.look_now()
            again = self.queue.next_look(self.now)
            assert again is None or again > 0, "what was due is done"

    # -- what always holds ----------------------------------------------------------------------

    @invariant()
    def every_job_is_in_exactly_one_place(self) -> None:
        queue = self.queue
        places = Counter([*queue.current, *queue.paused, *queue.waiting])
        assert set(places.values()) <= {1}
        told = {
            "current": {k for k, s in self.state.items() if s in ("writing", "written")},
            "paused": {k for k, s in self.state.items() if s == "paused"},
            "waiting": {k for k, s in self.state.items() if s == "waiting"},
        }
        for place, keys in told.items():
            assert set(getattr(queue, place)) == keys

    @invariant()
    def one_writes_and_it_is_the_last(self) -> None:
        writing = [k for k, state in self.state.items() if state == "writing"]
        assert len(writing) <= 1
        assert not writing or self.queue.current[-1] == writing[0]

    @invariant()
    def nobody_waits_for_nobody(self) -> None:
        """Whoever may begin has begun, and whoever may interrupt has."""
        if able := self.able():
            last = self.queue.current[-1]
            assert self.state[last] == "writing"
            assert not any(interrupts(self.wishes[k], self.wishes[last]) for k in able)

    @invariant()
    def waiting_is_bounded(self) -> None:
        count = Counter(self.wishes[k].owner for k in self.queue.waiting)
        assert max(count.values(), default=0) <= LIMIT

    @invariant()
    def of_the_progress_of_a_client_one_waits(self) -> None:
        count = Counter(
            self.wishes[k].owner for k in self.queue.waiting if self.wishes[k].priority is Priority.PROGRESS
        )
        assert max(count.values(), default=0) <= 1

    @invariant()
    def a_second_look_does_nothing(self) -> None:
        self.look_now()
        assert self.look_now() == ()

    @invariant()
    def audio_is_needed_of_all_that_is_not_written(self) -> None:
        upcoming = self.queue.upcoming()
        assert len(upcoming) == len(set(upcoming))
        assert set(upcoming) == {k for k, s in self.state.items() if s not in ("written", "ended")}
        free = [k for k in upcoming if k not in self.held]
        assert upcoming[: len(free)] == free
        idle = [k for k in free if k not in self.queue.current]
        classes = [self.wishes[k].priority for k in idle]
        assert classes == sorted(classes)


Machine.TestCase.settings = hypothesis_settings(max_examples=300, stateful_step_count=50, deadline=None)
test_any_sequence_of_calls = Machine.TestCase


# -- one by one -----------------------------------------------------------------------------------


class Jobs:
    """A queue whose jobs have their audio at once."""

    def __init__(self, **settings: Any) -> None:
        self.queue: SpeechQueue[str] = SpeechQueue(Speech(**settings))

    def __call__(self, key: str, wanted: Wish | Priority = Priority.TEXT, now: float = 0.0) -> list[Any]:
        wanted = plain(wanted) if isinstance(wanted, Priority) else wanted
        return [*self.queue.add(key, wanted, now), *self.queue.ready(key)]


def test_an_order_of_arrival_within_each_class() -> None:
    jobs = Jobs()
    assert jobs("t1") == [Begin("t1")]
    jobs("t2")
    jobs("m1", plain(Priority.MESSAGE, interrupt=False))
    jobs("t3", plain(queue="next"))
    jobs("m2", plain(Priority.MESSAGE, interrupt=False))
    jobs("n", plain(Priority.NOTIFICATION, drop_if_busy=False))
    order = ("m1", "m2", "t3", "t2", "n")
    assert jobs.queue.waiting == order
    assert jobs.queue.upcoming() == ["t1", *order]
    heard = []
    while current := jobs.queue.current:
        heard += current
        jobs.queue.ended(current[0])
    assert heard == ["t1", *order]


def test_only_audio_makes_a_job_begin_or_interrupt() -> None:
    jobs = Jobs()
    jobs("text")
    assert jobs.queue.add("alarm", plain(Priority.IMPORTANT), 0.0) == ()
    assert jobs.queue.upcoming() == ["alarm", "text"], "it is needed first"
    assert jobs.queue.ready("alarm") == (Pause("text"), Begin("alarm"))
    assert jobs.queue.ended("alarm") == (Resume("text", "resume"),)


@pytest.mark.parametrize("after", ["resume", "restart", "drop"])
def test_an_interruption_takes_those_in_the_ring_too(after: str) -> None:
    jobs = Jobs()
    jobs("a", plain(after_interrupt=after))
    jobs("b", plain())
    assert jobs.queue.written("a") == (Begin("b"),)
    assert jobs.queue.current == ("a", "b")
    first = Drop("a", "interrupted") if after == "drop" else Pause("a", after)  # type: ignore[arg-type]
    assert jobs("alarm", Priority.IMPORTANT) == [first, Pause("b"), Begin("alarm")]
    back = jobs.queue.written("alarm")
    if after != "drop":
        assert back == (Resume("a", after),), "what was heard first goes on first"
        back = jobs.queue.written("a")
    assert back == (Resume("b", "resume"),)


def test_what_is_no_lower_class_is_heard_to_its_end_behind_what_is_interrupted() -> None:
    jobs = Jobs()
    jobs("m", Priority.MESSAGE)
    jobs("t")
    assert jobs.queue.written("m") == (Begin("t"),)
    assert jobs("m2", Priority.MESSAGE) == [Pause("t"), Begin("m2")]
    assert jobs.queue.current == ("m", "m2")


def test_who_waited_before_the_one_that_interrupts_is_heard_before_it() -> None:
    jobs = Jobs()
    jobs("t")
    assert jobs("patient", plain(Priority.MESSAGE, interrupt=False)) == []
    assert jobs("m", Priority.MESSAGE) == [Pause("t"), Begin("patient")]
    assert jobs.queue.written("patient") == (Begin("m"),)


def test_people_pause_exactly_and_others_pass() -> None:
    jobs = Jobs()
    jobs("a")
    jobs("b")
    jobs("c")
    assert jobs.queue.hold(["a", "b"]) == (Pause("a", "exact", asked=True), Begin("c"))
    assert (jobs.queue.paused, jobs.queue.waiting) == (("a",), ("b",))
    assert jobs.queue.hold(["a"]) == ()
    assert jobs.queue.release(["a", "b"]) == ()
    assert jobs.queue.ended("c") == (Resume("a", "exact"),)
    assert jobs("alarm", Priority.IMPORTANT) == [Pause("a"), Begin("alarm")]
    assert jobs.queue.ended("alarm") == (Resume("a", "resume"),), "this time it was interrupted"


def test_those_that_were_paused_go_on_in_the_order_in_which_they_were_heard_last() -> None:
    jobs = Jobs()
    jobs("a")
    jobs("b")
    assert jobs.queue.hold(["a"]) == (Pause("a", "exact", asked=True), Begin("b"))
    jobs.queue.release(["a"])
    assert jobs.queue.written("b") == (Resume("a", "exact"),)
    assert jobs("alarm", Priority.IMPORTANT) == [Pause("b"), Pause("a"), Begin("alarm")]
    assert jobs.queue.written("alarm") == (Resume("b", "resume"),)


def test_a_text_replaces_its_clients_older_ones_and_no_others() -> None:
    jobs = Jobs()
    jobs("heard")
    jobs("waiting")
    jobs("other", plain(client="b"))
    jobs("note", plain(Priority.NOTIFICATION, drop_if_busy=False))
    assert jobs("new", plain(replace="own")) == [
        Drop("heard", "replaced"),
        Drop("waiting", "replaced"),
        Begin("other"),
    ]
    assert jobs.queue.waiting == ("new", "note")


def test_a_notification_is_for_a_free_loudspeaker() -> None:
    jobs = Jobs()
    jobs.queue.add("t", plain(), 0.0)
    assert jobs("n", Priority.NOTIFICATION) == [Drop("n", "busy")], "one waits"
    jobs.queue.ended("t")
    jobs.queue.add("n", plain(Priority.NOTIFICATION), 0.0)
    assert jobs("t") == [Begin("t"), Drop("n", "busy")], "it had no audio yet"
    assert jobs("n", plain(Priority.NOTIFICATION, replace="own")) == [Drop("n", "busy")]


def test_a_notification_that_people_hold_keeps_its_place() -> None:
    jobs = Jobs()
    jobs.queue.add("n", plain(Priority.NOTIFICATION), 0.0)
    assert jobs.queue.hold(["n"]) == ()
    assert jobs.queue.ready("n") == ()
    assert jobs("t") == [Begin("t")]
    assert jobs.queue.release(["n"]) == ()
    assert jobs.queue.ended("t") == (Begin("n"),)


def test_who_is_not_taken_replaces_nobody() -> None:
    jobs = Jobs()
    first = plain(Priority.NOTIFICATION, drop_if_busy=False)
    jobs("n1", first)
    jobs("other", plain(client="b"))
    assert jobs("n2", plain(Priority.NOTIFICATION, replace="own")) == [Drop("n2", "busy")]
    assert jobs.queue.current == ("n1",)


def test_the_last_progress_of_a_series_is_heard_as_a_message() -> None:
    jobs = Jobs(progress_s=PROGRESS_S)
    jobs("t")
    for number in range(3):
        expected = [Drop(f"p{number - 1}", "replaced")] if number else []
        assert jobs(f"p{number}", Priority.PROGRESS, now=float(number)) == expected
        assert jobs.queue.look(number + 0.9) == ()
    assert jobs.queue.next_look(2.9) == pytest.approx(0.6)
    assert jobs.queue.look(2.0 + PROGRESS_S) == (Pause("t"), Begin("p2"))
    assert jobs.queue.next_look(9.0) is None
    assert jobs("p3", Priority.PROGRESS, now=9.0) == [], "the promoted one is a message"


def test_a_progress_that_another_one_forestalls_is_promoted_as_well() -> None:
    jobs = Jobs(progress_s=PROGRESS_S)
    jobs.queue.add("p", plain(Priority.PROGRESS), 1.0)
    jobs("t", now=1.2)
    assert jobs.queue.next_look(1.2) == pytest.approx(PROGRESS_S - 0.2)
    assert jobs.queue.look(1.0 + PROGRESS_S) == (), "it has no audio yet"
    assert jobs.queue.ready("p") == (Pause("t"), Begin("p"))
    assert jobs.queue.written("p") == (Resume("t", "resume"),)
    assert jobs("alarm", Priority.IMPORTANT) == [Pause("p"), Pause("t"), Begin("alarm")], "as a message is"


def test_a_promoted_progress_comes_behind_the_messages_that_wait() -> None:
    jobs = Jobs(progress_s=PROGRESS_S)
    jobs("alarm", Priority.IMPORTANT)
    jobs("p", Priority.PROGRESS)
    jobs("m", Priority.MESSAGE, now=1.0)
    assert jobs.queue.look(PROGRESS_S) == ()
    assert jobs.queue.waiting == ("m", "p")


def test_a_progress_that_is_not_kept_from_being_heard_stays_one() -> None:
    jobs = Jobs()
    jobs.queue.add("p", plain(Priority.PROGRESS), 0.0)
    assert jobs.queue.next_look(9.0) is None, "it waits for its own audio"
    assert jobs.queue.ready("p") == (Begin("p"),)
    assert jobs("p2", Priority.PROGRESS) == [Drop("p", "replaced"), Begin("p2")]
    assert jobs("p3", plain(Priority.PROGRESS, client="b", drop_if_busy=True)) == [Drop("p3", "busy")]


def test_what_expires_was_not_heard_in_time() -> None:
    jobs = Jobs()
    jobs("t", plain(expires_ms=500))
    jobs("late", plain(expires_ms=500), now=1.0)
    assert jobs.queue.next_look(1.0) == pytest.approx(0.5)
    assert jobs.queue.look(1.4) == ()
    assert jobs.queue.look(1.5) == (Drop("late", "expired"),)
    assert jobs.queue.current == ("t",), "this one is heard"


def test_one_client_cannot_fill_the_queue() -> None:
    jobs = Jobs(waiting_per_client=2)
    for key in ("heard", "1", "2"):
        jobs(key)
    with pytest.raises(Busy, match="2 jobs of this client wait for the loudspeaker"):
        jobs("3")
    jobs("b", plain(client="b"))
    jobs("user", replace(plain(), uid=7))
    assert jobs("mine", plain(replace="own"))[-1] == Begin("b"), "the older ones make room"
    jobs.queue.settings = Speech(waiting_per_client=5)
    for key in "3456":
        jobs(key)
    with pytest.raises(ValueError, match="already"):
        jobs("3")


def test_those_that_people_stop_end_together() -> None:
    jobs = Jobs()
    for key in "abc":
        jobs(key)
    assert jobs.queue.stop(["a", "b"]) == (Begin("c"),)
    assert jobs.queue.ended("nobody") == ()
