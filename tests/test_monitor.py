"""Which connection a message came through, when file descriptors are reused."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
import zmq

from edged.monitor import Connections


class Frame:
    """A message's last frame as libzmq describes it: its descriptor and its peer."""

    def __init__(self, fd: int) -> None:
        self._values = {zmq.SRCFD: fd, "Socket-Type": "REQ", "Peer-Address": "localhost:1000:1000:77"}

    def get(self, key: object) -> object:
        return self._values[key]  # type: ignore[index]


def own(number: int) -> bytes:
    """An identity as libzmq gives it."""
    return struct.pack(">BI", 0, number % 2**32)


@pytest.fixture
def connections() -> Iterator[Connections]:
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    found = Connections(router)
    yield found
    found.close()
    context.destroy(linger=0)


@pytest.mark.parametrize("first", [5, 2**32 - 1])
def test_late_words_of_a_former_owner_do_not_displace_the_living(
    connections: Connections, first: int
) -> None:
    old, new = own(first), own(first + 1)
    connections.seen(old, Frame(9))
    connections.seen(new, Frame(9))
    assert connections.departed() == [old]
    for _ in range(3):  # what the old one had sent before it went, read between the new one's requests
        connections.seen(old, Frame(9))
        connections.seen(new, Frame(9))
    assert set(connections.departed()) == {old}


def test_the_newer_is_known_even_when_it_is_read_first(connections: Connections) -> None:
    old, new = own(7), own(8)
    connections.seen(new, Frame(9))
    connections.seen(old, Frame(9))
    assert connections.departed() == [old]


def test_a_client_with_an_identity_of_its_own_may_reconnect(connections: Connections) -> None:
    connections.seen(b"named", Frame(9))
    connections.seen(b"named", Frame(12))
    connections.seen(own(1), Frame(9))
    assert connections.departed() == []


def test_a_peer_is_described_by_what_the_kernel_says(connections: Connections) -> None:
    peer = connections.seen(own(1), Frame(9))
    assert (peer.socket_type, peer.uid, peer.pid) == ("REQ", 1000, 77)


def test_real_connections_are_counted_and_their_ends_reported(tmp_path: object) -> None:
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    found = Connections(router)
    router.bind(f"ipc://{tmp_path}/s")
    clients = [context.socket(zmq.DEALER) for _ in range(5)]
    identities = []
    for client in clients:
        client.connect(f"ipc://{tmp_path}/s")
        client.send(b"x")
        frames = router.recv_multipart(copy=False)
        identities.append(frames[0].bytes)
        found.seen(identities[-1], frames[-1])
    found.departed()
    assert len(found) == 5
    clients[2].close(linger=0)
    assert found.monitors[0].poll(2_000)
    assert found.departed() == [identities[2]]
    assert len(found) == 4
    found.close()
    context.destroy(linger=0)
