"""Where a daemon is: key files for tcp, and why nothing answers there, in words a technician can use.

Pure functions and frozen data, no socket of its own. Neighbour: `connection`.
"""

from __future__ import annotations

import grp
import os
from dataclasses import dataclass

import zmq

from edged.errors import BadValue, NoDaemon
from edged.paths import SOCKET, SYSTEM_RUNTIME, service_installed

CHECK_ENDPOINT = "check the endpoint: ipc:///path/of/socket or tcp://host:port"
CHECK_KEYS = "check the server key, and that the daemon knows this client's key"
JOIN_GROUP = "add your user to the group that owns the socket (listen.group){}, then log in again"


@dataclass(frozen=True, slots=True)
class Curve:
    """Key files for a tcp:// endpoint, as `edged keys make` writes them.

    server: the daemon's public key (.key). secret: this client's key (.key_secret); without one a
    throw-away pair is used, which suits a daemon that admits any client knowing its public key.
    """

    server: str
    secret: str = ""

    def apply(self, socket: zmq.Socket[bytes]) -> None:
        from zmq.auth import load_certificate

        try:
            socket.curve_serverkey = load_certificate(self.server)[0]
            public, secret = load_certificate(self.secret) if self.secret else zmq.curve_keypair()
        except (OSError, ValueError) as exc:
            raise BadValue(f"a key file cannot be read: {exc}", "make keys with: edged keys make") from None
        if secret is None:
            raise BadValue(f"{self.secret} holds no secret key", "give the .key_secret file of the pair")
        socket.curve_publickey, socket.curve_secretkey = public, secret


def look(endpoint: str) -> None:
    """Raises `NoDaemon` when an ipc socket cannot answer, so that nobody waits for it.

    Another user's socket fails silently in libzmq, hence the check of its permissions here.
    """
    if not endpoint.startswith("ipc://") or endpoint.startswith("ipc://@"):
        return
    path = endpoint[len("ipc://") :]
    command = ""
    try:
        group = os.stat(path).st_gid
        allowed = os.access(path, os.W_OK)
        command = f": sudo usermod -aG {grp.getgrgid(group).gr_name} NAME"
    except FileNotFoundError:
        raise NoDaemon(f"no daemon listens on {endpoint}", start_it()) from None
    except OSError:
        allowed = False
    except KeyError:  # a group without a name
        pass
    if not allowed:
        raise NoDaemon(f"this user may not use {endpoint}", JOIN_GROUP.format(command))


def unreachable(endpoint: str, refused: bool) -> NoDaemon:
    """The error for a connection that did not come about in time."""
    if refused:
        return NoDaemon(f"the daemon at {endpoint} refused the connection", CHECK_KEYS)
    if endpoint.startswith("tcp:"):
        return NoDaemon(f"no daemon answers on {endpoint}", f"{CHECK_ENDPOINT}; {CHECK_KEYS}")
    return NoDaemon(f"no daemon answers on {endpoint}", start_it())


def start_it() -> str:
    """What to do when no daemon is there: a service is asked first why it is down."""
    if not service_installed():
        return NoDaemon.default_hint
    return (
        f"the service's socket is {SYSTEM_RUNTIME / SOCKET}: systemctl status edged; why it is down: "
        "journalctl -u edged -x -e; edged doctor"
    )
