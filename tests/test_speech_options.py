"""A wish is the request's, else the entry's, else the class's own."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.job import Priority
from edged.protocol import Speak
from edged.settings import ClientDefaults
from edged.speech.options import FIELDS, entry_of, priority_of, promoted, wish

VALUES: dict[str, st.SearchStrategy[object]] = {
    "interrupt": st.booleans(),
    "queue": st.sampled_from(["last", "next"]),
    "replace": st.sampled_from(["none", "own"]),
    "drop_if_busy": st.booleans(),
    "expires_ms": st.integers(1, 86_400_000),
    "after_interrupt": st.sampled_from(["resume", "restart", "drop"]),
}
said = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})
names = st.sampled_from([None, "", *(p.name.lower() for p in Priority)])


def test_requests_and_entries_say_the_same() -> None:
    for kind in (Speak, ClientDefaults):
        found = {f.name: f.type for f in msgspec.structs.fields(kind)}
        assert set(FIELDS) == set(VALUES) <= set(found)
        assert {name: found[name] for name in FIELDS} == {
            f.name: f.type for f in msgspec.structs.fields(Speak) if f.name in FIELDS
        }


@given(said, said, names, names.map(lambda name: name or None))
def test_the_request_first_then_the_entry(
    request: dict[str, object], entry: dict[str, object], asked: str | None, configured: str | None
) -> None:
    priority = asked or configured or "text"
    own = wish("c", 3, Speak(text="x", priority=priority), ClientDefaults())
    found = wish(
        "c", 3, Speak(text="x", priority=asked, **request), ClientDefaults(priority=configured, **entry)
    )
    assert found.owner == ("c", 3)
    assert found.priority is own.priority is Priority[priority.upper()]
    for name in FIELDS:
        value = request[name] if request[name] is not None else entry[name]
        if name == "expires_ms":
            assert found.expires_s == (None if value is None else value / 1e3)
        elif name == "replace" and found.priority is Priority.PROGRESS:
            assert found.replace == "own"
        else:
            assert getattr(found, name) == (getattr(own, name) if value is None else value)


@pytest.mark.parametrize(
    ("priority", "interrupt", "drop_if_busy", "after_interrupt"),
    [
        ("important", True, False, "resume"),
        ("message", True, False, "resume"),
        ("text", False, False, "resume"),
        ("notification", False, True, "drop"),
        ("progress", True, False, "drop"),
    ],
)
def test_the_defaults_of_a_class(
    priority: str, interrupt: bool, drop_if_busy: bool, after_interrupt: str
) -> None:
    own = wish(b"\0id", -1, Speak(text="x", priority=priority), ClientDefaults())
    assert (own.interrupt, own.drop_if_busy, own.after_interrupt) == (
        interrupt,
        drop_if_busy,
        after_interrupt,
    )
    assert (own.queue, own.expires_s) == ("last", None)


def test_a_promoted_progress_is_as_a_message_is() -> None:
    progress = wish("c", 0, Speak(text="x", priority="progress"), ClientDefaults())
    assert promoted(progress) == wish("c", 0, Speak(text="x", priority="message"), ClientDefaults())


def test_the_first_entry_that_fits() -> None:
    entries = [
        ClientDefaults(client="panel", uid=5, priority="important"),
        ClientDefaults(client="panel", priority="message"),
        ClientDefaults(uid=5, priority="progress"),
        ClientDefaults(priority="notification"),
    ]
    for name, uid, expected in (
        ("panel", 5, "important"),
        ("panel", 6, "message"),
        ("panel", -1, "message"),
        ("other", 5, "progress"),
        ("", 5, "progress"),
        ("", -1, "notification"),
    ):
        assert entry_of(entries, name, uid).priority == expected
    assert entry_of(entries[:2], "other", 5) == entry_of([], "panel", 5) == ClientDefaults()


def test_no_priority_is_text() -> None:
    assert {priority_of(request, entry) for request in (None, "") for entry in (None, "text")} == {
        Priority.TEXT
    }
    assert priority_of("", "message") is Priority.MESSAGE
    assert priority_of("progress", "message") is Priority.PROGRESS
