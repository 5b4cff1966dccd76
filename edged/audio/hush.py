"""Keeps what ALSA, PortAudio and JACK print out of the daemon's stderr, and nothing else.

They print from their own threads, about each device that is not there and each one that goes away. ALSA has a
handler for it. PortAudio has none that it exports, and writes to C's `stderr`, which therefore becomes a
stream that leaves such lines out; what other libraries print there goes on to file descriptor 2. Python's
tracebacks and the C library's own fatal messages go there directly. Only what the interpreter says of a fatal
error of its own is lost: it asks the stream for a descriptor, and this one has none.

Main thread of the daemon, at start and stop. Neighbours: `service` enters it; commands have
`find.drivers_muted`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NOISE = (
    b"Expression '",  # PortAudio: an assertion that did not hold
    b"Stream error: ",  # ALSA's plugin for PulseAudio
    b"ALSA lib ",
    b"Cannot connect to server",  # JACK, which is looked for as well
    b"jack server is not running",
    b"JackShmReadWritePtr::",
)
UNBUFFERED = 2  # _IONBF: what is printed last before a crash must come out

_Write = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)
_Report = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
)


class _Functions(ctypes.Structure):
    """cookie_io_functions_t of the GNU C library."""

    _fields_ = (
        ("read", ctypes.c_void_p),
        ("write", _Write),
        ("seek", ctypes.c_void_p),
        ("close", ctypes.c_void_p),
    )


def _pass_on(_: int, data: ctypes._Pointer[ctypes.c_char], size: int) -> int:
    text = ctypes.string_at(data, size)
    if text.strip() and not text.startswith(NOISE):
        with suppress(OSError):
            os.write(2, text)
    return size


# They live as long as the process: a thread of a library may call one after it was taken away. The last
# argument of `_IGNORE` stands for all that follow.
_PASS_ON = _Write(_pass_on)
_IGNORE = _Report(lambda *_: None)


@contextmanager
def drivers_hushed() -> Iterator[None]:
    """Meanwhile these libraries print nothing. Where it cannot be done, nothing changes."""
    with _alsa_hushed(), _stderr_filtered():
        yield


@contextmanager
def _alsa_hushed() -> Iterator[None]:
    try:
        alsa = ctypes.CDLL("libasound.so.2")  # the copy that PortAudio uses
    except OSError:
        yield
        return
    alsa.snd_lib_error_set_handler(_IGNORE)
    try:
        yield
    finally:
        alsa.snd_lib_error_set_handler(None)


@contextmanager
def _stderr_filtered() -> Iterator[None]:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):  # elsewhere `stderr` is a constant
        yield
        return
    libc.fopencookie.argtypes = (ctypes.c_void_p, ctypes.c_char_p, _Functions)
    libc.fopencookie.restype = ctypes.c_void_p
    stream = libc.fopencookie(None, b"w", _Functions(write=_PASS_ON))
    if not stream:
        yield
        return
    libc.setvbuf(ctypes.c_void_p(stream), None, UNBUFFERED, ctypes.c_size_t(0))
    stderr = ctypes.c_void_p.in_dll(libc, "stderr")
    before = stderr.value
    stderr.value = stream
    try:
        yield
    finally:
        # The stream itself stays: a thread of a library may be printing to it.
        stderr.value = before
