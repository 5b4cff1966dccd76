"""Ends activations and roll-backs by kill -9 at any instant, and looks whether store and daemon still work.

Half of the kills fall anywhere in a command; the other half soon after it began to change the store, which
takes it a few milliseconds only. In some rounds the daemon is killed and not the command, in some both are.
Neighbour: `rig`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep

import zmq

from edged import protocol
from soaking.rig import VERSIONS, Rig

SOON_S = 0.02  # after the first change to the store
MOST = 5  # rounds for each interruption: in some the command has ended before
RELOAD_S = 1.0  # a daemon takes about so long to take a bundle over


@dataclass
class Kills:
    """interrupted: rounds in which the command was still at work. states: what it left."""

    rounds: int = 0
    interrupted: int = 0
    commands: int = 0
    daemons: int = 0
    states: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def loop(rig: Rig, rounds: int, seed: int, say: Callable[[str], None]) -> Kills:
    """rounds: how often a command is interrupted, itself or by the end of the daemon it talks to."""
    chance = random.Random(f"{seed} kills")
    kills = Kills()
    usual_s = rig.run("bundle", "activate", rig.folder("2"), "--json").seconds
    for number in range(MOST * rounds):
        if kills.interrupted >= rounds:
            break
        victim = chance.choice(("command", "command", "daemon", "both"))
        try:
            _round(rig, kills, chance, victim, usual_s)
        except Exception as error:
            kills.faults.append(f"round {number} ({victim}): {error}")
        kills.rounds += 1
        if number % 10 == 9:
            say(f"{number + 1} rounds, {kills.interrupted} of {rounds} interruptions")
    return kills


def _round(rig: Rig, kills: Kills, chance: random.Random, victim: str, usual_s: float) -> None:
    before = rig.store.current(rig.name)
    if chance.random() < 0.5 and rig.store.previous(rig.name):
        what, target = "rollback", rig.store.previous(rig.name)
        arguments = ["bundle", "rollback", rig.name]
    else:
        what, target = "activate", chance.choice([f for v in VERSIONS if (f := rig.folder(v)) != before])
        arguments = ["bundle", "activate", target]
        if chance.random() < 0.5:
            arguments.append("--no-trial")
    command = rig.begin(*arguments)
    try:
        if chance.random() < 0.5:
            sleep(chance.random() * usual_s)
        else:
            _wait_for_change(rig, command)
            sleep(chance.random() * chance.choice((0.002, SOON_S, RELOAD_S)))
        at_work = command.poll() is None
        kills.interrupted += at_work
        if victim != "daemon":
            kills.commands += at_work
            with suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)
        if victim != "command":
            kills.daemons += 1
            with rig.outage(signal.SIGKILL):
                _sound(rig, what, before, target)
        command.communicate(timeout=60)
    finally:
        if command.poll() is None:
            command.kill()
        command.communicate()
    _sound(rig, what, before, target)
    current = rig.store.current(rig.name)
    kills.states[f"{what}: {'switched' if current == target else 'not switched'}"] += 1
    _speaks(rig)


def _wait_for_change(rig: Rig, command: subprocess.Popen[bytes]) -> None:
    """Until the command has touched the store's links, or ended."""
    first = os.stat(rig.store.directory).st_mtime_ns
    while os.stat(rig.store.directory).st_mtime_ns == first and command.poll() is None:
        sleep(0.0002)


def _sound(rig: Rig, what: str, before: str, target: str) -> None:
    wrong = rig.unsound()
    if wrong:
        raise RuntimeError(f"after a killed {what}: {wrong}")
    current = rig.store.current(rig.name)
    if current not in (before, target):
        raise RuntimeError(f"after a killed {what}: {current} is in use, neither {before} nor {target}")


def _speaks(rig: Rig) -> None:
    """The daemon answers with speech, and takes over what the store says is in use."""
    if rig.died:
        raise RuntimeError("the daemon ended")
    begin = monotonic()
    if rig.first_audio() - begin > 30:
        raise RuntimeError("the daemon is silent")
    with zmq.Context() as context, context.socket(zmq.DEALER) as asking:
        asking.linger = 0
        asking.connect(rig.endpoint)
        asking.send(protocol.encode(protocol.Reload(id="reload")))
        if not asking.poll(60_000):
            raise RuntimeError("a reload is not answered")
        reply = protocol.decode_event(asking.recv_multipart()[0])
    if not isinstance(reply, protocol.ReloadReply):
        raise RuntimeError(f"a reload is refused: {reply}")
    path = rig.store.directory / rig.store.current(rig.name)
    if reply.bundles.get(rig.name) != str(path.resolve()):
        raise RuntimeError(f"the daemon speaks with {reply.bundles}, in use is {path}")
