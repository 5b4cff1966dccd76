"""A start that waits for the network: under systemd only, not for ever, and a signal ends it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from edged.errors import AddressUnavailable
from edged.patience import PATIENCE_S, patiently
from edged.signals import Signals
from edged.systemd import Notifier

UNIT = Path(__file__).parents[1] / "systemd" / "edged.service"


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[tuple[Notifier, socket.socket]]:
    """A Notifier, and the socket that hears what it says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(5)
        yield Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")}), heard


class Address:
    """To be had at the given try."""

    def __init__(self, there_at: int) -> None:
        self.there_at, self.tries = there_at, 0

    def __call__(self) -> str:
        self.tries += 1
        if self.tries < self.there_at:
            raise AddressUnavailable("cannot listen on tcp://192.0.2.1:5555")
        return "bound"


def test_an_address_that_comes_late_is_waited_for(manager: tuple[Notifier, socket.socket]) -> None:
    notifier, heard = manager
    signals = Signals()
    signals.wake()  # the first wait is over at once
    address = Address(there_at=2)
    assert patiently(address, notifier, signals) == "bound"
    assert address.tries == 2
    assert b"STATUS=waiting: cannot listen on tcp://192.0.2.1:5555" in heard.recv(1000)


def test_a_person_is_told_at_once() -> None:
    address = Address(there_at=2)
    with pytest.raises(AddressUnavailable):
        patiently(address, Notifier({}), Signals())
    assert address.tries == 1


def test_it_ends(manager: tuple[Notifier, socket.socket]) -> None:
    with pytest.raises(AddressUnavailable):
        patiently(Address(there_at=99), manager[0], Signals(), patience_s=-1.0)


def test_a_signal_ends_it_well(manager: tuple[Notifier, socket.socket]) -> None:
    signals = Signals()
    signals.stops = 1
    signals.wake()
    with pytest.raises(SystemExit) as caught:
        patiently(Address(there_at=99), manager[0], signals)
    assert caught.value.code == 0


def test_the_unit_goes_on_trying() -> None:
    """Starts that last so long never come to its limit."""
    unit = dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if "=" in line[1:])
    assert PATIENCE_S * int(unit["StartLimitBurst"]) > int(unit["StartLimitIntervalSec"])
    assert int(unit["TimeoutStartSec"]) > PATIENCE_S
