"""The hardened service on a real sound server: what a listener hears."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.pulse import PulseServer, wait_until, why_not
from tests.service.edged import SENTENCE, Edged
from tests.service.rootfs import ROOT

pytestmark = [pytest.mark.systemd, pytest.mark.audio, pytest.mark.timeout(600)]

PLACE = "/run/user/1000/pulse"


@pytest.fixture
def session_sound(edged: Edged) -> Iterator[PulseServer]:
    """A sound server where that of alice's session would be. It runs outside, the machine has none."""
    if reason := why_not():
        pytest.skip(reason)
    outside = edged.machine.sound
    server = PulseServer(outside)
    server.start()
    run = edged.machine.run
    run("systemctl", "start", "user@1000.service")
    run("mkdir", "-p", PLACE, user="alice")
    run("ln", "-sf", "/srv/sound/pulse.sock", f"{PLACE}/native", user="alice")
    yield server
    server.stop()


def test_it_speaks_through_the_sound_server_of_a_users_session(
    edged: Edged, session_sound: PulseServer
) -> None:
    edged.configure("voices: {bundles: [tone]}\n")
    drop_in = ROOT / "systemd/drop-ins/desktop-sound.conf"
    edged.drop_in(drop_in.name, drop_in.read_text())
    edged.start()
    with session_sound.record() as recording:
        said = edged.machine.run("edged", "say", SENTENCE, user="alice", check=False)
        assert said.returncode == 0, said.stderr + edged.log
        wait_until(lambda: np.abs(recording.samples).max(initial=0) > 0.01, what="a sound")
    assert edged.machine.run("stat", "--format=%U:%G", "/run/edged/edged.sock").stdout == "alice:edged\n"
    assert edged.show("NRestarts") == "0"
