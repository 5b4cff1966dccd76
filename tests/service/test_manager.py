"""What systemd and its tools show of the installed unit: exposure, status line, reload."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.service.edged import LONG, UNIT, Edged, saying
from tests.service.machine import ENVIRONMENT, wait_until
from tests.service.rootfs import ROOT
from tests.service.test_unit_files import MOST_EXPOSED

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]

TONE = "voices: {bundles: [tone]}\naudio: {enabled: false}\n"
BOTH = "voices: {bundles: [tone, slow]}\naudio: {enabled: false}\n"


def test_the_installed_unit_exposes_little(edged: Edged) -> None:
    judged = edged.machine.run("systemd-analyze", "security", "--no-pager", UNIT).stdout
    level = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", judged)[1])
    print(f"exposure {level}")
    assert 0.0 < level <= MOST_EXPOSED


def test_systemd_is_told_what_it_does_from_start_to_stop(edged: Edged) -> None:
    edged.configure("voices: {bundles: [slow]}\naudio: {enabled: false}\nservice: {drain_s: 25}\n")
    with watched(edged) as seen:
        edged.start()
        assert edged.show("StatusText") == "ready: tone-24000-120-160"
        with saying(edged, LONG) as job:
            edged.machine.run("systemctl", "stop", "edged")
            job.communicate(timeout=60)
    print(seen)
    assert seen[-2:] == ["ready: tone-24000-120-160", "draining: live jobs 1"]
    assert [line for line in seen if line.startswith("starting: ")], seen


@contextmanager
def watched(edged: Edged) -> Iterator[list[str]]:
    """The status lines, each once, as often as systemctl can be asked; complete when it is left."""
    edged.machine.write(
        "/tmp/watch", "while [ -e /tmp/watch ]; do systemctl show edged -p StatusText --value; done\n"
    )
    command = edged.machine.inside("sh", "/tmp/watch")
    seen: list[str] = []
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as watcher:
        try:
            yield seen
        finally:
            edged.machine.run("rm", "/tmp/watch")  # which ends it
        assert watcher.stdout is not None
        seen += dict.fromkeys(line.strip() for line in watcher.stdout if line.strip())


def test_reload_takes_the_new_configuration_over(edged: Edged) -> None:
    edged.start()
    before = edged.pid
    edged.configure(BOTH)
    edged.machine.run("systemctl", "reload", UNIT)
    edged.wait_for("StatusText", "ready: tone, tone-24000-120-160")
    assert edged.speaks()
    edged.configure("voices: {bundels: [tone]}\n")
    edged.machine.run("systemctl", "reload", UNIT)
    wait_until(lambda: "bundels" in edged.log, 30, "the reason")
    assert edged.speaks()
    assert (edged.pid, edged.show("ActiveState"), edged.show("NRestarts")) == (before, "active", "0")


def test_where_systemd_can_it_waits_for_the_end_of_a_reload(edged: Edged) -> None:
    drop_in = ROOT / "systemd/drop-ins/notify-reload.conf"
    needed = int(re.search(r"systemd (\d+) or later", drop_in.read_text())[1])
    here = int(edged.machine.run("systemctl", "--version").stdout.split()[1])
    if here < needed:
        pytest.skip(f"for systemd {needed}, the machine has {here} (EDGED_TEST_SUITE=trixie has a newer one)")
    edged.drop_in(drop_in.name, drop_in.read_text())
    edged.start()
    edged.configure(BOTH)
    edged.machine.run("systemctl", "reload", UNIT)
    assert edged.show("StatusText") == "ready: tone, tone-24000-120-160"
    edged.configure("voices: {bundels: [tone]}\n")
    begin = time.monotonic()
    edged.machine.run("systemctl", "reload", UNIT)
    assert time.monotonic() - begin < 20, "a refused reload ends as well"
    assert (edged.show("ActiveState"), edged.show("NRestarts")) == ("active", "0")
    assert edged.speaks()
