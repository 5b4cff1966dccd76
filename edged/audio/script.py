"""The chunks of one job, and where its utterances are: what is yet to be played, and what may be once more.

No thread of its own: guarded by the player's lock. Neighbour: `segment` owns one for each job.
"""

from __future__ import annotations

from collections import deque

from edged.job import AudioChunk, Samples


class Script:
    """Places count samples of the job's audio at the voice's rate; what was skipped is not counted.

    Chunks that were taken are kept until the utterance after theirs is heard (`forget`). queued: samples that
    were not taken yet. complete: nothing follows the chunks that are here.
    """

    def __init__(self, begin: float = 0.0) -> None:
        """begin: where the first chunk is."""
        self.queued = 0
        self.complete = False
        self._chunks: deque[AudioChunk] = deque()
        self._kept: deque[AudioChunk] = deque()
        self._taken = 0  # samples taken of the first chunk
        self._at = begin  # where the next sample to be taken is
        self._places: list[tuple[float, int]] = []  # where each utterance begins

    @property
    def empty(self) -> bool:
        return not (self._chunks or self._kept)

    @property
    def more(self) -> bool:
        return bool(self._chunks)

    def add(self, chunk: AudioChunk) -> None:
        self._chunks.append(chunk)
        self.queued += len(chunk.samples)
        self.complete = self.complete or chunk.last

    def take(self, most: int) -> tuple[Samples, bool]:
        """The next piece, and whether it is the last one. Only while there is more."""
        chunk = self._chunks[0]
        if not self._places or self._places[-1][1] != chunk.utterance:
            self._places.append((self._at, chunk.utterance))
        piece = chunk.samples[self._taken : self._taken + most]
        self._taken += len(piece)
        self.queued -= len(piece)
        self._at += len(piece)
        if self._taken < len(chunk.samples):
            return piece, False
        self._kept.append(self._chunks.popleft())
        self._taken = 0
        return piece, chunk.last

    def place(self, where: float) -> tuple[float, int]:
        """The beginning and the number of the utterance that is there."""
        begun = [place for place in self._places if place[0] <= where + 1.0]
        if begun:
            return begun[-1]
        return where, self._chunks[0].utterance if self._chunks else 0

    def following(self, utterance: int) -> int | None:
        """The first utterance behind that one of which there is audio."""
        return next((c.utterance for c in (*self._kept, *self._chunks) if c.utterance > utterance), None)

    def return_to(self, utterance: int, where: float) -> None:
        """The next sample is the first one of that utterance, whose place is `where` from now on."""
        self._chunks = deque(c for c in (*self._kept, *self._chunks) if c.utterance >= utterance)
        self._kept.clear()
        self._places = []
        self._taken, self._at = 0, where
        self.queued = sum(len(chunk.samples) for chunk in self._chunks)

    def forget(self, heard: float) -> None:
        """Gives up the utterances before the one that is heard."""
        _, utterance = self.place(heard)
        while self._kept and self._kept[0].utterance < utterance:
            self._kept.popleft()
        self._places = [place for place in self._places if place[1] >= utterance]
