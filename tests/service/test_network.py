"""The service and its sockets: addresses that come late, keys and groups that it may not have yet."""

from __future__ import annotations

import pytest

from tests.service.edged import Edged
from tests.service.rootfs import ROOT

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]

VOICE = "voices: {bundles: [tone]}\naudio: {enabled: false}\n"
KEYS = "/etc/edged/keys"
PORT = 5998
TCP = (
    f"listen: {{tcp: 'tcp://127.0.0.1:{PORT}', curve_secret: {KEYS}/daemon.key_secret, "
    f"curve_clients: {KEYS}}}\n"
)
TAKER = f"import socket, time; s = socket.create_server(('127.0.0.1', {PORT})); time.sleep(3600)"


def keys(edged: Edged) -> None:
    edged.machine.run("sh", "-c", f"rm -rf {KEYS} && edged keys make {KEYS} daemon")


def take(edged: Edged) -> None:
    edged.machine.run("systemd-run", "--unit=taker", "--quiet", "/opt/edged/bin/python", "-c", TAKER)
    edged.machine.run("sh", "-c", f"until grep -q ':{PORT:04X} ' /proc/net/tcp; do sleep 0.1; done")


def test_an_address_that_comes_late_is_waited_for(edged: Edged) -> None:
    keys(edged)
    edged.machine.run("chgrp", "-R", "edged", KEYS)
    edged.machine.run("chmod", "640", f"{KEYS}/daemon.key_secret")
    drop_in = ROOT / "systemd/drop-ins/network.conf"
    edged.drop_in(drop_in.name, drop_in.read_text())
    edged.configure(VOICE + TCP)
    take(edged)
    edged.machine.run("systemctl", "start", "--no-block", "edged")
    edged.machine.run("sleep", "3")
    assert edged.show("ActiveState") == "activating"
    assert "cannot listen on tcp://127.0.0.1" in edged.show("StatusText")
    edged.machine.run("systemctl", "stop", "taker")
    edged.wait_for("ActiveState", "active")
    assert edged.show("NRestarts") == "0"
    assert edged.speaks()
    assert "network-online.target" in edged.show("After")


def test_a_stop_while_it_waits_is_no_failure(edged: Edged) -> None:
    keys(edged)
    edged.machine.run("chmod", "644", f"{KEYS}/daemon.key_secret")
    edged.configure(VOICE + TCP)
    take(edged)
    edged.machine.run("systemctl", "start", "--no-block", "edged")
    edged.machine.run("sleep", "3")
    edged.machine.run("systemctl", "stop", "edged")
    edged.machine.run("systemctl", "stop", "taker")
    assert (edged.show("ActiveState"), edged.show("Result")) == ("inactive", "success")


def test_a_port_for_statistics_that_is_taken_stops_nothing(edged: Edged) -> None:
    edged.configure(VOICE + f"stats: {{prometheus: '127.0.0.1:{PORT}'}}\n")
    take(edged)
    edged.start()
    edged.machine.run("systemctl", "stop", "taker")
    assert edged.speaks()
    assert "code=stats_unserved" in edged.log


def test_keys_that_root_made_come_with_the_command(edged: Edged) -> None:
    keys(edged)
    edged.configure(VOICE + TCP)
    assert not edged.try_to_start()
    command = f"chgrp edged {KEYS}/daemon.key_secret; chmod 640 {KEYS}/daemon.key_secret"
    assert command in edged.log
    edged.machine.run("sh", "-c", command)
    edged.machine.run("systemctl", "reset-failed", "edged")
    edged.start()
    assert edged.speaks()


def test_a_group_of_others_comes_with_the_command(edged: Edged) -> None:
    run = edged.machine.run
    run("groupadd", "--force", "speakers")
    edged.configure(VOICE + "listen: {group: speakers}\n")
    assert not edged.try_to_start()
    assert "usermod -aG speakers edged" in edged.log
    run("usermod", "-aG", "speakers", "edged")
    run("systemctl", "reset-failed", "edged")
    edged.start()
    assert run("stat", "--format=%G", "/run/edged/edged.sock").stdout.strip() == "speakers"
    run("gpasswd", "-d", "edged", "speakers")


def test_the_doctor_tells_the_error_of_the_last_start_only(edged: Edged) -> None:
    """An older one, of a configuration that was corrected since, would lead astray."""
    edged.configure("voices: {bundles: [gone]}\naudio: {enabled: false}\n")
    edged.drop_in("once.conf", "[Service]\nRestart=no\n")
    assert not edged.try_to_start()
    edged.configure(VOICE)
    edged.drop_in("user.conf", "[Service]\nUser=nobody-knows\n")
    assert not edged.try_to_start()
    told = edged.machine.run("edged", "doctor", "--no-tone", check=False).stdout
    line = next(line for line in told.splitlines() if "service:" in line)
    assert "217" in line
    assert "User=" in line
    assert "gone" not in line
