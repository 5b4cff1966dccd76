"""What was heard is remembered in bounds, and texts only where that is allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edged.job import Priority
from edged.settings import Speech
from edged.speech.history import Heard, History


def heard(number: int, seconds: float = 1.0) -> Heard:
    return Heard(
        job=str(number),
        client="a",
        client_id="",
        priority=Priority.TEXT,
        voice="v",
        ended_at=1e9 + number,
        ended="done",
        heard_s=seconds,
        text=f"text {number}",
    )


@given(st.lists(st.sampled_from([0.0, 0.5, 2.0]), max_size=30), st.integers(0, 10), st.booleans())
def test_the_last_ones_that_were_heard(seconds: list[float], size: int, texts: bool) -> None:
    history = History(Speech(history=size, history_texts=texts))
    for number, each in enumerate(seconds):
        history.record(heard(number, each))
    kept = [str(n) for n, each in enumerate(seconds) if each > 0][-size:] if size else []
    assert [entry.job for entry in history.entries()] == kept[::-1]
    assert [entry.text for entry in history.entries()] == [f"text {n}" if texts else "" for n in kept[::-1]]
    for number in range(len(seconds)):
        found = history.find(str(number))
        assert (found.job if found else None) == (str(number) if str(number) in kept else None)


def test_other_settings_forget_what_they_do_not_allow() -> None:
    history = History(Speech(history=3, history_texts=True))
    for number in range(3):
        history.record(heard(number))
    assert "text" not in repr(history.find("0"))
    history.use(Speech(history=2, history_texts=False))
    assert [(entry.job, entry.text) for entry in history.entries()] == [("2", ""), ("1", "")]
    history.use(Speech(history=9, history_texts=True))
    assert [entry.text for entry in history.entries()] == ["", ""]
    history.record(heard(7))
    assert [entry.text for entry in history.entries()] == ["text 7", "", ""]
