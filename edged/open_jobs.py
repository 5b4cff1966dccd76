"""Open jobs: speech whose text is still being written, as a dialogue model does it.

Server thread only, but for `waiting`. Each piece of text is looked at as the text of a request is, and goes
to the text stage by whole sentences. Neighbours: `admission` owns the one `OpenJobs`, `text.feed` finds the
sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from edged.errors import BadValue, EdgedError, EmptyText, TextTooLong, UnspeakableText
from edged.job import Job
from edged.text.feed import Feed
from edged.text.script import Script

Look = Callable[[str], Script]  # raises the `RequestError` that refuses a text
# A piece of a job's text, None where nothing of it can be heard; whether more will follow, and how many
# characters were left out where there is no script to tell.
Submit = Callable[[Job, Script | None, bool, int], None]


@dataclass(slots=True, eq=False)
class _Opened:
    job: Job
    look: Look
    submit: Submit
    feed: Feed
    since: float  # monotonic, when its client last said something


class OpenJobs:
    """By the number of the job."""

    def __init__(self) -> None:
        self._opened: dict[str, _Opened] = {}

    @property
    def waiting(self) -> bool:
        """Any thread: some job is open."""
        return bool(self._opened)

    def open(self, job: Job, text: str, look: Look, submit: Submit) -> Script | None:
        """Takes a new job with the beginning of its text; the script of what can be spoken at once."""
        feed = Feed()
        script = _looked(look, feed.add(text))[0]
        job.open = True
        self._opened[job.id] = _Opened(job, look, submit, feed, monotonic())
        return script

    def append(self, job: Job, text: str, flush: bool, limit: int) -> int:
        """More text. flush: nothing of it waits for the end of its sentence. limit: characters of all of it.

        Returns how many wait. Raises what refuses the piece, which then counts as never sent.
        """
        one = self._find(job)
        one.since = monotonic()
        if len(job.text) + len(text) > limit:
            raise TextTooLong(
                f"the text would have {len(job.text) + len(text)} characters, the limit is {limit}"
            )
        whole = one.feed.add(text)
        if flush:
            whole += one.feed.rest()
        try:
            script, left_out = _looked(one.look, whole)
        except EdgedError:
            one.feed.give_back(whole, len(text))
            raise
        job.text += text
        if script is not None or left_out:
            one.submit(job, script, True, left_out)
        return one.feed.held

    def close(self, job: Job) -> None:
        """No more text comes: what waits is spoken, and the job ends when all of it was.

        Raises what refuses the rest; the job is closed all the same.
        """
        one = self._find(job)
        self.forget(job)
        job.open = False
        try:
            script, left_out = _looked(one.look, rest := one.feed.rest())
        except EdgedError:
            one.submit(job, None, False, _visible(rest))
            raise
        one.submit(job, script, False, left_out)

    def forget(self, job: Job) -> None:
        """It has ended."""
        self._opened.pop(job.id, None)

    def expired(self, idle_s: float) -> list[Job]:
        """Those whose clients have said nothing for so long."""
        before = monotonic() - idle_s
        return [one.job for one in self._opened.values() if one.since < before]

    def _find(self, job: Job) -> _Opened:
        if job.id not in self._opened:
            raise BadValue(
                f"the text of job {job.id} is complete", "send open=true with the request that begins it"
            )
        return self._opened[job.id]


def _looked(look: Look, text: str) -> tuple[Script | None, int]:
    """The script of a piece; None where it has nothing to speak, with how many characters that are."""
    if not text.strip():
        return None, 0
    try:
        return look(text), 0
    except (EmptyText, UnspeakableText):
        return None, _visible(text)


def _visible(text: str) -> int:
    return sum(not one.isspace() for one in text)
