"""Binding: the sockets of the daemon, their lock, permissions and keys.

Made on the main thread before the socket thread starts, used and closed by the socket thread. A lock
file beside the socket keeps a second daemon from stealing it: libzmq would bind over a live socket. When
one of these files is removed the socket goes on, and nobody finds it: `lost` tells, `restore` makes it anew.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import zmq

from edged.errors import AddressUnavailable, AlreadyRunning, ConfigError
from edged.paths import events_endpoint, prepare_directory
from edged.settings import Limits, Listen

ZAP_DOMAIN = "edged"
SEND_HIGH_WATER = 16  # messages libzmq holds for one peer before the backlog takes over
LARGEST_FRAME = 1024 * 1024  # bytes: beyond it libzmq ends the connection
LARGEST_SUBSCRIPTION = 4096  # bytes
MOST_DESCRIPTORS = 65_536
RESERVED_DESCRIPTORS = 48  # for files, sound and everything else that is not a client
# How long the last replies may take to leave: a client on a busy machine takes megabytes at its own pace. One
# that is gone holds nothing; one that has stopped reading holds the exit for so long.
LINGER_MS = 5_000
LONGEST_PATH = 107  # bytes of a unix socket path
# What passes: an address that DHCP has not given yet, an interface that is not up, a port of another program.
PASSING = (errno.EADDRNOTAVAIL, errno.EADDRINUSE, errno.ENODEV)


Identity = tuple[int, int]  # device and inode


class Endpoints:
    """The bound ROUTER and PUB sockets. Raises `AlreadyRunning`, `AddressUnavailable` or `ConfigError`.

    most_connections: beyond so many the process would run out of file descriptors.
    """

    def __init__(self, listen: Listen, limits: Limits, endpoint: str) -> None:
        self.endpoint = endpoint
        self.events = listen.events or events_endpoint(endpoint)
        self.tcp, self.tcp_events = listen.tcp, listen.tcp_events
        # A quarter is left for those that come in while the limit is being noticed.
        self.most_connections = (_raise_descriptor_limit() - RESERVED_DESCRIPTORS) * 3 // 4
        self._settings = listen
        self._paths = [_socket_path(address) for address in (self.endpoint, self.events)]
        self._ours: dict[Path, Identity] = {}  # what we bound
        self._locks: dict[Path, tuple[int, Identity]] = {}  # descriptor and file, by the path of the socket
        self._stop_authenticator: Callable[[], None] = lambda: None
        # Addresses of clients with unknown keys, since it was asked last.
        self.refused: Callable[[], list[str]] = list
        self._context = zmq.Context()
        try:
            for path in self._paths:
                self._lock(path)
            self.router = self._context.socket(zmq.ROUTER)
            self.pub = self._context.socket(zmq.PUB)
            self._configure(listen, limits)
            self._listen_locally()
            if listen.tcp:
                self._bind_tcp(listen)
        except BaseException:
            self.close()
            raise

    def reset(self) -> None:
        """Ends every local connection (libzmq ends them with their listener) and listens again."""
        for socket, address in ((self.router, self.endpoint), (self.pub, self.events)):
            socket.unbind(address)
        self._listen_locally()

    def lost(self) -> bool:
        """Any thread: whether the file of a socket, or of its lock, is not the one that we made."""
        return any(map(self._is_lost, self._paths)) or any(map(self._is_lock_lost, self._paths))

    def restore(self) -> None:
        """Listens also where a file was lost; connections go on. Raises `ConfigError`, or `AlreadyRunning`
        when another daemon has taken the place."""
        for path in filter(self._is_lock_lost, self._paths):
            former, _ = self._locks[path]
            self._lock(path)
            os.close(former)
        self._listen_locally(self._is_lost)

    def close(self) -> None:
        """Closes the sockets and removes their files."""
        self._stop_authenticator()
        self._context.destroy(linger=LINGER_MS)
        for path, ours in self._ours.items():
            with suppress(OSError):
                if _identity(path.stat()) == ours:  # not the socket of a successor
                    path.unlink()
        for lock, _ in self._locks.values():
            os.close(lock)

    # -- steps of binding -----------------------------------------------------------------------

    def _lock(self, path: Path) -> None:
        lock = self._take_lock(path)
        self._locks[path] = (lock, _identity(os.fstat(lock)))

    def _take_lock(self, path: Path) -> int:
        """An exclusive lock on a file beside the socket, after a look at what is in its place."""
        if len(os.fsencode(path)) > LONGEST_PATH:
            raise ConfigError(
                f"the socket path {path} is longer than {LONGEST_PATH} bytes",
                "choose a shorter listen.endpoint",
            )
        if path.exists() and not path.is_socket():
            raise ConfigError(f"{path} exists and is not a socket", "choose another --endpoint")
        prepare_directory(f"ipc://{path}")
        where = _lock_file(path)
        while True:
            try:
                lock = os.open(where, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as exc:
                raise ConfigError(
                    f"the lock file {where} cannot be opened: {exc.strerror}",
                    "run the daemon as the owner of that directory, or choose another --endpoint",
                ) from None
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                raise AlreadyRunning(f"another daemon serves {self.endpoint}") from None
            with suppress(OSError):
                if os.stat(where).st_ino == os.fstat(lock).st_ino:
                    return lock
            os.close(lock)  # it was removed between the opening and the lock: once more

    def _configure(self, listen: Listen, limits: Limits) -> None:
        router = self.router
        router.router_mandatory = 1  # a reply to a vanished peer is an error instead of a silent loss
        router.sndhwm = SEND_HIGH_WATER
        # Beyond this libzmq drops the connection; up to this the client gets a typed error.
        router.maxmsgsize = max(LARGEST_FRAME, limits.frame_kb * 4096)
        self.pub.maxmsgsize = LARGEST_SUBSCRIPTION

    def _is_lost(self, path: Path) -> bool:
        return _there(path) != self._ours.get(path)

    def _is_lock_lost(self, path: Path) -> bool:
        return _there(_lock_file(path)) != self._locks[path][1]

    def _listen_locally(self, wanted: Callable[[Path], bool] = lambda _: True) -> None:
        """Without keys and heartbeats, which the socket may have from a bind of TCP before a reset."""
        for socket, address, path in zip(
            (self.router, self.pub), (self.endpoint, self.events), self._paths, strict=True
        ):
            if not wanted(path):
                continue
            path.unlink(missing_ok=True)  # left by a daemon that was killed: we hold the lock
            socket.curve_server, socket.heartbeat_ivl = False, 0
            self._bind(socket, address)
            self._set_permissions(path)
            self._ours[path] = _identity(path.stat())

    def _bind_tcp(self, listen: Listen) -> None:
        """TCP is served with CURVE only. A socket takes these options for the binds that follow, so the
        local addresses, bound before, stay plain."""
        # Imported here: the authenticator brings asyncio, which a daemon on local sockets does without.
        import zmq.auth

        from edged.doorkeeper import Doorkeeper

        try:
            public, secret = zmq.auth.load_certificate(listen.curve_secret)
        except PermissionError:
            key = listen.curve_secret
            raise ConfigError(
                f"listen.curve_secret {key} may not be read by the daemon's user",
                f"let its group read it: chgrp edged {key}; chmod 640 {key}",
            ) from None
        except (OSError, ValueError) as exc:
            raise ConfigError(
                f"listen.curve_secret {listen.curve_secret} cannot be read: {exc}",
                "make a key pair with: edged keys make DIR NAME",
            ) from None
        if not os.path.isdir(listen.curve_clients):  # Path's would raise where it may not look
            raise ConfigError(
                f"listen.curve_clients {listen.curve_clients} is not a directory",
                "it holds one public key file (*.key) for each client that may connect, and the daemon's "
                "user may look into it",
            )
        try:
            door = Doorkeeper(self._context, ZAP_DOMAIN, Path(listen.curve_clients))
        except (OSError, ValueError) as exc:
            raise ConfigError(
                f"a key in listen.curve_clients {listen.curve_clients} cannot be read: {exc}",
                "let the daemon's user read the public keys: chmod 644 FILE",
            ) from None
        self._stop_authenticator, self.refused = door.stop, door.refused
        # For tcp only. A local socket that was closed says so at once; and a client whose queue is full does
        # not answer, in libzmq, so one that plays a stream as it comes would be taken for dead.
        self.router.heartbeat_ivl = listen.heartbeat_ms
        self.router.heartbeat_timeout = listen.heartbeat_ms * 2
        for socket, address in ((self.router, listen.tcp), (self.pub, listen.tcp_events)):
            if not address:
                continue
            socket.zap_domain = ZAP_DOMAIN.encode()
            socket.curve_publickey = public
            socket.curve_secretkey = secret
            socket.curve_server = True
            self._bind(socket, address)

    def _bind(self, socket: zmq.Socket[bytes], address: str) -> None:
        try:
            socket.bind(address)
        except zmq.ZMQError as exc:
            text = f"cannot listen on {address}: {exc.strerror}"
            if exc.errno in PASSING and address.startswith("tcp:"):
                raise AddressUnavailable(text) from None
            raise ConfigError(text, "choose another endpoint") from None

    def _set_permissions(self, path: Path) -> None:
        """libzmq makes the file with 0777 & ~umask; a client without write access fails silently."""
        group, mode = self._settings.group, self._settings.mode
        try:
            if group:
                shutil.chown(path, group=group)
            os.chmod(path, int(mode, 8))
        except PermissionError as exc:
            raise ConfigError(
                f"the socket {path} cannot be given to group {group!r}: {exc.strerror}",
                f"put the daemon's user into that group: usermod -aG {group} edged, then restart it",
            ) from None
        except (OSError, LookupError) as exc:
            raise ConfigError(
                f"the socket {path} cannot be given group {group!r} and mode {mode}: {exc}",
                "check listen.group and listen.mode",
            ) from None


def _raise_descriptor_limit() -> int:
    """As many descriptors as the system lets us have; each client costs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft < most:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return soft


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _there(path: Path) -> Identity | None:
    try:
        return _identity(path.stat())
    except OSError:
        return None


def _lock_file(path: Path) -> Path:
    return Path(f"{path}.lock")


def _socket_path(address: str) -> Path:
    """The file of a local address. The network is reached through listen.tcp only, with keys."""
    if not address.startswith("ipc:///") or address.endswith("/"):
        raise ConfigError(
            f"the daemon's own address is ipc:// and an absolute path, not {address!r}",
            "for the network set listen.tcp, which needs keys" if address.startswith("tcp") else "",
        )
    return Path(address.removeprefix("ipc://"))
