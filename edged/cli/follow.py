"""`edged say --follow -`: stdin is spoken while it is being written. Main thread.

Neighbour: `speech`, which has the command.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from edged.cli.context import State
from edged.cli.exits import FAILED, complain, naming
from edged.errors import BadValue, RequestError

READ_BYTES = 4096


def follow_stdin(state: State, options: dict[str, Any]) -> int:
    """Speaks what comes until its end, and returns when all of it was heard. What is refused is told and left
    out, as what comes behind it may be all right."""
    if sys.stdin is None:
        raise click.UsageError("the text is to be read from stdin, which is closed")
    decoder = codecs.getincrementaldecoder("utf-8")()
    refused = False
    with state.client() as client, client.write(on_event=state.saw, **options) as writing:
        data = b"?"
        while data:
            with naming("standard input"):
                data = os.read(sys.stdin.fileno(), READ_BYTES)
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                raise BadValue("the text on stdin is not UTF-8", "convert it: iconv -t UTF-8") from None
            for line in text.splitlines(keepends=True):  # so that one that is refused takes no other with it
                refused |= _left_out(partial(writing.append, line))
        refused |= _left_out(writing.close)
        done = writing.wait()
    state.show(done, lambda: None)
    if done.skipped:
        complain(f"warning: {done.skipped} characters have no sound and are left out")
    for warning in done.warnings:
        complain(f"warning: {warning}")
    return FAILED if refused else 0


def _left_out(say: Callable[[], object]) -> bool:
    """Whether it was refused, which is told."""
    try:
        say()
    except RequestError as error:
        complain(f"warning: left out: {error}")
        return True
    return False
