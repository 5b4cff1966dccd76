"""What clients and subscribers are told of a job, over real sockets: marks above all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from edged.admission import Admission, Sinks
from edged.delivery import Delivery, told
from edged.errors import UnspeakableText
from edged.forecast import Forecast
from edged.job import Job, MarkReached, News
from edged.outgoing import Outgoing
from edged.settings import Limits
from edged.tickets import Peer, Ticket
from tests.test_job import Recorder, make_job


class Desk:
    """A `Delivery` between a client and a subscriber."""

    def __init__(self, context: zmq.Context[Any]) -> None:
        self.router, self.client = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
        self.pub, self.subscriber = context.socket(zmq.PUB), context.socket(zmq.SUB)
        self.client.routing_id = b"c"
        self.subscriber.subscribe(b"")
        for server, peer, name in (
            (self.router, self.client, "inproc://router"),
            (self.pub, self.subscriber, "inproc://pub"),
        ):
            server.bind(name)
            peer.connect(name)
        self.client.send(b"here")
        self.router.recv_multipart()
        ends: list[Job] = []
        self.admission = Admission(Limits(), lambda _: None, ends.append, self.news)
        nowhere = Sinks(lambda *_: Recorder(), lambda *_: Recorder(), lambda jobs, do: [])
        self.admission.open({}, "", nowhere, lambda *_: None, lambda *_: None, Forecast({}, {}, 0.0))
        outgoing = Outgoing(self.router, 1.0, lambda _: None, lambda *_: None, lambda _: None)
        self.delivery = Delivery(self.admission, outgoing, self.pub)

    def news(self, job: Job, news: News) -> None:
        self.delivery.deliver(job, told(job, news), None)

    def job(self, reply: str) -> Job:
        job = make_job(id="1", client_id="mine", on_news=self.news, sink=Recorder())
        peer = Peer(b"c", "DEALER")
        self.admission.tickets[job.id] = Ticket(job, peer, "app", reply, "finish")
        job.start()
        return job

    def heard(self) -> list[dict[str, Any]]:
        return [json.loads(frames[0]) for frames in _all(self.client)]

    def published(self) -> list[dict[str, Any]]:
        return [json.loads(frames[1]) for frames in _all(self.subscriber)]


def _all(socket: zmq.Socket[bytes]) -> list[list[bytes]]:
    found = []
    while socket.poll(50):
        found.append(socket.recv_multipart())
    return found


@pytest.fixture
def desk() -> Iterator[Desk]:
    context = zmq.Context()
    yield Desk(context)
    context.destroy(linger=0)


@pytest.mark.parametrize("reply", ["events", "final"])
def test_marks_are_told_to_their_client_and_published_without_a_name(desk: Desk, reply: str) -> None:
    job = desk.job(reply)
    job.tell(MarkReached("secret", 1.25))
    job.tell(MarkReached("other", 2.5))
    job.skipped = 3
    job.warn("left out: the voice has no sound for: X")
    job.done()
    desk.delivery.deliver(job, None, None)
    *marks, done = desk.heard()
    times = [{"name": "secret", "time_s": 1.25}, {"name": "other", "time_s": 2.5}]
    assert [{k: event[k] for k in ("name", "time_s")} for event in marks] == times * (reply == "events")
    assert all((event["event"], event["id"], event["job"]) == ("mark", "mine", "1") for event in marks)
    assert (done["event"], done["marks"], done["skipped"]) == ("done", times, 3)
    *marks, done = desk.published()
    assert [(event["event"], event["name"], event["time_s"]) for event in marks] == [
        ("mark", "", 1.25),
        ("mark", "", 2.5),
    ]
    assert (done["marks"], done["skipped"], done["warnings"]) == ([], 3, [])


def test_the_characters_that_a_refusal_names_are_for_its_client(desk: Desk) -> None:
    job = desk.job("events")
    job.fail(UnspeakableText("the text has nothing to speak", "the voice has no sound for: X"))
    desk.delivery.deliver(job, None, None)
    (told,), (published,) = desk.heard(), desk.published()
    assert (told["code"], told["hint"]) == ("unspeakable_text", "the voice has no sound for: X")
    assert (published["code"], published["hint"]) == ("unspeakable_text", "")


def test_no_mark_follows_the_end_of_its_job(desk: Desk) -> None:
    job = desk.job("events")
    job.cancel()
    job.tell(MarkReached("late", 0.0))
    desk.delivery.deliver(job, None, None)
    assert [event["event"] for event in desk.heard()] == ["cancelled"]
    assert [event["event"] for event in desk.published()] == ["cancelled"]
