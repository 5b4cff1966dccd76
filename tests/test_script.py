"""The chunks of a job: taken, kept until they were heard, and taken once more."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edged.audio.script import Script
from edged.job import AudioChunk


def filled(*utterances: list[int]) -> Script:
    """Chunks of these sizes; every sample is the number of its utterance."""
    script = Script()
    for number, sizes in enumerate(utterances):
        for at, size in enumerate(sizes):
            last = number == len(utterances) - 1 and at == len(sizes) - 1
            script.add(AudioChunk(np.full(size, number, np.float32), last, number))
    return script


def taken(script: Script, most: int = 7) -> list[int]:
    samples: list[int] = []
    last = False
    while script.more:
        assert not last
        piece, last = script.take(most)
        assert len(piece) <= most
        samples += [int(sample) for sample in piece]
    assert last
    assert script.queued == 0
    return samples


SPEECH = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=4), min_size=1, max_size=5)


@given(utterances=SPEECH, pieces=st.integers(0, 40), where=st.floats(0.0, 1.0))
def test_it_returns_to_any_utterance_that_was_not_forgotten(
    utterances: list[list[int]], pieces: int, where: float
) -> None:
    script = filled(*utterances)
    whole = [n for n, sizes in enumerate(utterances) for _ in range(sum(sizes))]
    count = 0
    for _ in range(pieces):
        if script.more:
            count += len(script.take(7)[0])
    assert script.queued == len(whole) - count
    heard = int(where * count)
    script.forget(heard)
    begin, utterance = script.place(heard)
    # To the sample after the next one: a place in the ring is known to a frame of it.
    assert utterance in whole[max(0, heard - 1) : heard + 2]
    assert begin == whole.index(utterance) or not count
    assert script.following(utterance) == (utterance + 1 if utterance + 1 < len(utterances) else None)
    script.return_to(utterance, begin)
    assert script.place(begin) == (begin, utterance)
    assert taken(script) == whole[whole.index(utterance) :]


@given(utterances=SPEECH)
def test_no_more_is_kept_than_what_may_be_heard_again(utterances: list[list[int]]) -> None:
    script = filled(*utterances)
    whole = taken(script)
    script.forget(len(whole))
    script.return_to(0, 0.0)
    assert script.queued == sum(utterances[-1])
    assert script.complete
    assert not script.empty
