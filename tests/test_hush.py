"""What the sound libraries print stays out of the daemon's stderr, whatever happens to its loudspeaker."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from tests import bundles
from tests.daemon import receive_until, running, send
from tests.pulse import PulseServer, pulse, pulse_server

__all__ = ["pulse", "pulse_server"]
OWN_LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{3} ")


@pytest.mark.audio
def test_the_daemons_stderr_has_only_its_own_lines(pulse: PulseServer) -> None:
    env = {"PULSE_SERVER": pulse.address}
    audio = {"enabled": True, "device": "pulse", "latency_ms": 100}
    with running(bundles.tone(), env=env, audio=audio) as daemon, daemon.socket() as socket:
        text = "one two three four five six seven eight nine ten eleven twelve"

        def speak(ending: str) -> None:
            send(socket, op="speak", text=text)
            (*_, last) = receive_until(socket, "done", "failed")
            assert last["event"] == ending, last

        for fault in ("server", "sink"):
            send(socket, op="speak", text=text * 3, reply="events")
            receive_until(socket, "started")
            time.sleep(0.8)
            if fault == "server":
                pulse.stop()
            else:
                pulse.pactl("unload-module", "module-null-sink")
            assert receive_until(socket, "failed")[-1]["code"] == "device_lost"
            for _ in range(2):  # one that is looked for, one that is refused
                speak("failed")
            if fault == "sink":
                pulse.stop()
            pulse.start()
            time.sleep(1.1)
            send(socket, op="speak", text="one")
            assert receive_until(socket, "done", "failed")[-1]["event"] == "done"
        log = daemon.log
    lines = log.splitlines()
    assert all(OWN_LINE.match(line) for line in lines), [s for s in lines if not OWN_LINE.match(s)]
    about = [line for line in lines if "loudspeaker '" in line or "no loudspeaker" in line]
    assert [("no more audio" in line) for line in about] == [False, True, False, True, False], about


def test_what_others_print_is_not_lost() -> None:
    code = """if True:
        import ctypes, os, sys
        from edged.audio.hush import drivers_hushed
        libc = ctypes.CDLL(None)
        def put(text):
            libc.fprintf(ctypes.c_void_p.in_dll(libc, "stderr"), b"%s\\n", text)
        with drivers_hushed():
            put(b"Assertion failed: check (src/epoll.cpp:73)")
            put(b"Expression 'ret' failed in 'src/hostapi/alsa/pa_linux_alsa.c', line: 1736")
            put(b"jack server is not running or cannot be started")
            print("python", file=sys.stderr, flush=True)
            os.write(2, b"descriptor\\n")
        put(b"Expression 'later'")"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr.splitlines() == [
        "Assertion failed: check (src/epoll.cpp:73)",
        "python",
        "descriptor",
        "Expression 'later'",
    ]
