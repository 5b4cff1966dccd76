"""A start that waits for the network: the address of listen.tcp may come a while after the boot.

Main thread, before any other is started. Neighbours: `service` calls it with what binds the sockets.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from edged import log
from edged.errors import AddressUnavailable
from edged.signals import Signals
from edged.systemd import Notifier

logger = logging.getLogger("edged")
T = TypeVar("T")
# The unit gives up after seven starts within 300 s. A start that waits longer than a seventh of that is tried
# again for as long as it takes; it stays below TimeoutStartSec=.
PATIENCE_S = 60.0
LOOK_S = 1.0


def patiently(
    bind: Callable[[], T], manager: Notifier, signals: Signals, patience_s: float = PATIENCE_S
) -> T:
    """What `bind` returns, tried again once a second while an address is not to be had.

    Only under a service manager: a person at a terminal is told at once. Raises what `bind` raised last, or
    SystemExit after a signal that ends the process: nothing was started yet.
    """
    until, told = monotonic() + patience_s, False
    while True:
        try:
            return bind()
        except AddressUnavailable as error:
            if not manager.enabled or monotonic() > until:
                raise
            if not told:
                text = f"waiting for an address: {error}"
                log.event(logger, logging.WARNING, text, code=error.code, phase="start")
                manager.status(f"waiting: {error.message}")
            told = True
        signals.wait(LOOK_S)
        if signals.stops:
            raise SystemExit(os.EX_OK)
