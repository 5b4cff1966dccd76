"""PortAudio's callback: what it leaves behind, and that nothing makes it wait."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import threading
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from edged.audio.output import Output, Speaker
from edged.audio.player import Player
from edged.audio.ring import Ring
from edged.settings import Audio
from edged.threads import hurry
from tests.sounds import make_job, noise

FRAMES = 512
FINE, DRY = SimpleNamespace(output_underflow=False), SimpleNamespace(output_underflow=True)


def unopened(ring: Ring) -> Output:
    """An output whose callback can be called, without a device."""
    output = Output.__new__(Output)
    output.speaker = Speaker(0, "none", 48_000, ring.channels)
    output.frames = output.xruns = output.xrun_at = output._hush = output._lead = 0
    output._beats = 1
    output._ring = ring
    return output


def test_ten_thousand_callbacks_leave_nothing_behind() -> None:
    ring = Ring(48_000, 2)
    output, out = unopened(ring), bytearray(FRAMES * 2 * 4)
    sound = noise(0.5, 48_000)

    def play(count: int) -> None:
        for i in range(count):
            if i % 40 == 0:  # audio, cuts, gaps
                ring.write(sound[: ring.room])
                ring.cut(ring.read + 700, ring.read + 900)
            output._callback(out, FRAMES, None, DRY if i % 50 == 0 else FINE)

    play(2_000)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before, tracked = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
        play(10_000)
        grown, more = tracemalloc.get_traced_memory()[0] - before, len(gc.get_objects()) - tracked
    finally:
        tracemalloc.stop()
        gc.enable()
    assert grown < 2_000  # the counters' own growth; one object a callback were 500 kB
    assert more < 20
    assert output.frames == 12_000 * FRAMES
    assert output.xruns > 0


def test_the_callback_returns_while_the_players_lock_is_held() -> None:
    player, job = Player(Audio(), lambda: None), make_job()
    ring = player._speaker.ring = Ring(48_000, 2)
    output, out = unopened(ring), bytearray(FRAMES * 2 * 4)
    ring.write(noise(0.5, 48_000))
    done = threading.Event()

    def call() -> None:
        for _ in range(100):
            output._callback(out, FRAMES, None, FINE)
        done.set()

    with player._changed, job._lock:
        threading.Thread(target=call, daemon=True).start()
        assert done.wait(5.0)
    assert ring.read == 24_000


def test_the_lead_in_of_a_stream_that_goes_on_is_silent_and_takes_nothing() -> None:
    ring = Ring(48_000, 1)
    output = unopened(ring)
    output._lead = 3 * FRAMES
    ring.write(noise(0.5, 48_000))
    out = bytearray(FRAMES * 4)
    for i in range(5):
        output._callback(out, FRAMES, None, FINE)
        assert (np.frombuffer(out, np.float32) == 0).all() == (i < 3)
    assert ring.read == 2 * FRAMES


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"RLIMIT_RTPRIO": 0, "RLIMIT_NICE": 0}, ""),
        ({"RLIMIT_RTPRIO": 4, "RLIMIT_NICE": 0}, "real time 4"),
        ({"RLIMIT_RTPRIO": 50, "RLIMIT_NICE": 0}, "real time 10"),
        ({"RLIMIT_RTPRIO": 0, "RLIMIT_NICE": 25}, "nice -5"),
        ({"RLIMIT_RTPRIO": 0, "RLIMIT_NICE": 40}, "nice -10"),
    ],
)
def test_priority_is_taken_where_it_is_allowed(limits: dict[str, int], expected: str) -> None:
    """In a process of its own, in a thread of its own: the others keep theirs."""
    if os.geteuid() != 0:
        pytest.skip("limits are raised by root only")
    code = """if True:
        import os, threading
        from edged.threads import hurry
        got, own = [], os.getpriority(os.PRIO_PROCESS, 0)
        def run():
            got.append(hurry())
            thread = threading.get_native_id()
            got.append((os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, os.getpriority(0, thread)))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert os.getpriority(os.PRIO_PROCESS, 0) == own and os.sched_getscheduler(0) == os.SCHED_OTHER
        print(got[0], *got[1], sep="|")"""

    def limit() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, name), (value, value))

    command = [sys.executable, "-c", code]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=limit)
    except subprocess.SubprocessError:
        pytest.skip("this container lets nobody raise a limit")
    got, policy, nice = run.stdout.strip().split("|")
    if expected and not got:
        pytest.skip("this container lets nobody raise a priority")
    assert got == expected
    assert (int(policy) == os.SCHED_RR) == expected.startswith("real time")
    if expected.startswith("nice"):
        assert int(nice) == int(expected.split()[1])


def test_without_limits_nothing_changes_here() -> None:
    if resource.getrlimit(resource.RLIMIT_RTPRIO)[0] or resource.getrlimit(resource.RLIMIT_NICE)[0]:
        pytest.skip("this process may")
    began = time.monotonic()
    assert hurry() == ""
    assert time.monotonic() - began < 0.1
