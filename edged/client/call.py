"""One request that waits for its answers. Data only; `connection` fills it, its owner empties it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from time import monotonic

from edged import protocol
from edged.errors import EdgedError
from edged.protocol import AnyEvent

_LAST = (*protocol.TERMINAL, protocol.ReloadReply, protocol.Explained)  # of a long call
Answer = tuple[AnyEvent, bytes]
OnEvent = Callable[[AnyEvent], None]


class Call:
    """One request that waits for answers. `long`: silence may mean a long job, so ask with a ping.
    within_s: how long all of it may take."""

    def __init__(self, id: str, long: bool, within_s: float = math.inf) -> None:
        self.id = id
        self.long = long
        self.within_s = within_s
        self.begun = monotonic()
        self.since = monotonic()
        self.answered = False
        self._ended = False
        self.answers: deque[Answer | EdgedError] = deque()

    def put(self, answer: Answer | EdgedError) -> None:
        """The next answer came. The asyncio client overrides it to wake its task."""
        self.answered = True
        self.answers.append(answer)

    def take(self) -> Answer:
        """The next answer that has come. Raises it when it is an error of the connection."""
        answer = self.answers.popleft()
        self.since = monotonic()
        if isinstance(answer, EdgedError):
            raise answer
        self._ended = isinstance(answer[0], _LAST)
        return answer

    def has_ended(self) -> bool:
        """Whether its last event has come, taken or not."""
        waiting = [answer[0] for answer in self.answers if not isinstance(answer, EdgedError)]
        return self._ended or any(isinstance(event, _LAST) for event in waiting)
