"""What a request leaves unsaid is as its client's entry says, and a ticket has the wish."""

from __future__ import annotations

from typing import Any

import pytest

from edged.admission import Admission, Sinks
from edged.controls import COMMON
from edged.errors import BadValue
from edged.forecast import Forecast
from edged.job import Job, Priority
from edged.protocol import Speak, Speech, Synthesize
from edged.settings import ClientDefaults, Limits
from edged.speech.options import FIELDS, Wish, wish
from edged.tickets import Peer
from edged.voices.api import VoiceCard
from tests.test_job import Recorder

TONE = VoiceCard("tone", "tone", ("*",), 24_000, "", "", "", COMMON)
PANEL = ClientDefaults(client="panel", uid=5, priority="important", volume=0.5, queue="next", expires_ms=700)
PEER = Peer(b"\0id", "DEALER", uid=5)
ASKED: dict[str, Any] = {
    "interrupt": False,
    "queue": "next",
    "replace": "own",
    "drop_if_busy": False,
    "expires_ms": 5,
    "after_interrupt": "drop",
}


class Heard(Admission):
    """Keeps what is wished of the loudspeaker, by the number of the job."""

    def __init__(self) -> None:
        super().__init__(Limits(), lambda _: None, lambda _: None)
        self.wishes: dict[str, Wish] = {}

    def speaker(self, job: Job, rate: int, wanted: Wish) -> Recorder:
        self.wishes[job.id] = wanted
        return Recorder()


@pytest.fixture
def admission() -> Heard:
    made = Heard()
    nowhere = Sinks(made.speaker, lambda *_: Recorder(), lambda jobs, do: [])
    forecast = Forecast({"tone": 1}, {"tone": "tone"}, 0.0)
    made.open({"tone": TONE}, "tone", nowhere, lambda *_: None, lambda *_: None, forecast, clients=[PANEL])
    return made


def admitted(admission: Heard, request: Speech, peer: Peer = PEER) -> tuple[Job, Wish | None]:
    job = admission.tickets[admission.admit(request, peer).job].job
    return job, admission.wishes.get(job.id)


def test_the_entry_speaks_for_a_request_that_does_not(admission: Heard) -> None:
    for unsaid in (None, ""):
        request = Speak(text="Hello.", client="panel", priority=unsaid)
        job, wanted = admitted(admission, request)
        assert (job.priority, job.params.volume) == (Priority.IMPORTANT, 0.5)
        assert wanted == wish("panel", 5, request, PANEL)
        assert (wanted.queue, wanted.expires_s) == ("next", 0.7)
    said = {**ASKED, "priority": "message", "volume": 1.0}
    job, wanted = admitted(admission, Speak(text="Hello.", client="panel", **said))
    assert (job.priority, job.params.volume) == (Priority.MESSAGE, 1.0)
    assert wanted == wish("panel", 5, Speak(text="", **said), ClientDefaults())


def test_whom_no_entry_names_is_heard_as_ever(admission: Heard) -> None:
    for request, peer, client in (
        (Speak(text="Hello."), PEER, PEER.identity),
        (Speak(text="Hello.", client="panel"), Peer(b"x", "DEALER", uid=6), "panel"),
    ):
        job, wanted = admitted(admission, request, peer)
        assert (job.priority, job.params.volume) == (Priority.TEXT, 1.0)
        assert wanted == wish(client, peer.uid, request, ClientDefaults())


def test_off_the_loudspeaker_there_is_an_order_of_service_and_nothing_else(admission: Heard) -> None:
    job, wanted = admitted(admission, Synthesize(text="Hello.", client="panel"))
    assert (job.priority, job.params.volume, wanted) == (Priority.IMPORTANT, 1.0, None)
    assert set(ASKED) == set(FIELDS)
    for name, value in ASKED.items():
        with pytest.raises(BadValue, match=f"^{name}: says when a job is heard"):
            admission.admit(Synthesize(text="Hello.", **{name: value}), PEER)
    assert len(admission.tickets) == 1
