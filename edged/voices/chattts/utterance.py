"""What the frontend hands to the synthesizer for one sentence. Leaf module; made on the text thread.

Neighbours: `frontend.py` makes it, `synth.py` and `refine.py` speak it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edged.job import Utterance


@dataclass(frozen=True, slots=True)
class ChatUtterance(Utterance):
    """symbols: the code prompt. speaker: which one of the bundle, unless vector says it.

    vector: [hidden] of length 1, from a request. refine: the refine prompt, empty for none; then text is
    where the text stands in the code prompt (first, last + 1), for the refined one to take its place.
    """

    speaker: int = 0
    vector: NDArray[np.float32] | None = None
    refine: tuple[int, ...] = ()
    text: tuple[int, int] = (0, 0)
