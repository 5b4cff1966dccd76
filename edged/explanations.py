"""The operation `explain`, between what a client asks and what the text thread does.

Pure functions, server thread and text thread. Neighbours: `admission` looks at the request's text, the text
stage explains it, the server sends the event.
"""

from __future__ import annotations

import msgspec

from edged import protocol
from edged.errors import EdgedError
from edged.text.explain import Explanation


def speech_of(request: protocol.Explain) -> protocol.Speak:
    """The request for speech that it explains."""
    return protocol.Speak(**{name: getattr(request, name) for name in protocol.Reading.__struct_fields__})


def event_of(answer: Explanation | EdgedError, id: str) -> protocol.Event:
    """What the client gets."""
    if isinstance(answer, EdgedError):
        return protocol.failed(answer, id=id)
    told = msgspec.convert(answer, protocol.Explained, from_attributes=True)
    return msgspec.structs.replace(told, id=id)
