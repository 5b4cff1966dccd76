"""What each class does to each other one that is heard, with every option that changes it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from edged.job import Priority
from edged.settings import ClientDefaults, Speech
from edged.speech.actions import Begin, Drop, Pause
from edged.speech.options import Wish, wish
from edged.speech.queue import SpeechQueue
from edged.speech.rules import Reaction, interrupts, reaction, replaces

# As in README. Rows: the new one, columns: the one that is heard (important, message, text, notification,
# progress), of another client: waits, busy, pauses or drops it.
DEFAULTS = """
    important     waits  pauses pauses drops  drops
    message       waits  waits  pauses drops  drops
    text          waits  waits  waits  waits  waits
    notification  busy   busy   busy   busy   busy
    progress      waits  waits  waits  waits  waits
"""
# The same where each of them may interrupt, and waits rather than being dropped.
FORCED = """
    important     waits  pauses pauses drops  drops
    message       waits  waits  pauses drops  drops
    text          waits  waits  waits  drops  drops
    notification  waits  waits  waits  waits  drops
    progress      waits  waits  waits  waits  waits
"""
WORDS = {
    "waits": Reaction.WAIT,
    "busy": Reaction.BUSY,
    "pauses": Reaction.PAUSE,
    "drops": Reaction.DROP,
}
ALL = list(product(Priority, Priority))


def plain(priority: Priority, client: str = "a", **options: object) -> Wish:
    return wish(client, 0, ClientDefaults(priority=priority.name.lower(), **options), ClientDefaults())


def cell(table: str, new: Priority, current: Priority) -> Reaction:
    rows = {row[0]: row[1:] for row in map(str.split, table.strip().splitlines())}
    return WORDS[rows[new.name.lower()][current]]


@pytest.mark.parametrize(("new", "current"), ALL)
def test_every_cell(new: Priority, current: Priority) -> None:
    old = plain(current, "b")
    assert reaction(plain(new), old) is cell(DEFAULTS, new, current)
    forced = plain(new, interrupt=True, drop_if_busy=False)
    assert reaction(forced, old) is cell(FORCED, new, current)
    assert reaction(plain(new, interrupt=False, drop_if_busy=False), old) is Reaction.WAIT
    assert reaction(replace(forced, drop_if_busy=True), old) is Reaction.BUSY


@pytest.mark.parametrize(("new", "current"), ALL)
@pytest.mark.parametrize("after", ["resume", "restart", "drop"])
def test_who_is_interrupted_says_what_becomes_of_it(new: Priority, current: Priority, after: str) -> None:
    found = reaction(
        plain(new, interrupt=True, drop_if_busy=False), plain(current, "b", after_interrupt=after)
    )
    if cell(FORCED, new, current) is Reaction.WAIT:
        assert found is Reaction.WAIT
    else:
        assert found is (Reaction.DROP if after == "drop" else Reaction.PAUSE)


@pytest.mark.parametrize(("new", "current"), ALL)
def test_only_ones_own_of_the_same_class_are_replaced(new: Priority, current: Priority) -> None:
    wanted = plain(new, replace="own")
    own = reaction(wanted, plain(current)) is Reaction.REPLACE
    assert own == (new is current)
    assert not replaces(wanted, plain(current, "b"))
    assert not replaces(wanted, replace(plain(current), uid=7))
    assert replaces(plain(new), plain(current)) == (new is current is Priority.PROGRESS)


def test_nobody_interrupts_who_does_not_stand_below_him() -> None:
    for new, current in ALL:
        assert interrupts(plain(new, interrupt=True), plain(current)) == (new < current)


@pytest.mark.parametrize("table", [DEFAULTS, FORCED])
@pytest.mark.parametrize(("new", "current"), ALL)
def test_the_queue_does_what_the_table_says(table: str, new: Priority, current: Priority) -> None:
    options = {} if table is DEFAULTS else {"interrupt": True, "drop_if_busy": False}
    queue: SpeechQueue[str] = SpeechQueue(Speech())
    assert queue.add("old", plain(current, "b"), 0.0) == ()
    assert queue.ready("old") == (Begin("old"),)
    actions = (*queue.add("new", plain(new, **options), 1.0), *queue.ready("new"))
    assert (
        actions
        == {
            Reaction.WAIT: (),
            Reaction.BUSY: (Drop("new", "busy"),),
            Reaction.PAUSE: (Pause("old"), Begin("new")),
            Reaction.DROP: (Drop("old", "interrupted"), Begin("new")),
        }[cell(table, new, current)]
    )
