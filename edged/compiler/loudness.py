"""How loud a finished voice is, for the loudspeaker to make voices equally loud.

CLI process only: it needs SciPy, which the daemon does not load. Neighbours: `parts` asks for every voice of
a new bundle; `audio.level` uses the figure.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from importlib import import_module

import numpy as np

from edged.job import Samples
from edged.log import event as log_event

log = logging.getLogger("edged.compiler")
BLOCK_S = 0.4  # of the measurement; what is shorter has no loudness

Loudness = Callable[[Samples, int], "float | None"]


def meter() -> Loudness:
    """Measures samples at a rate in Hz: integrated loudness (EBU R128, ITU-R BS.1770-4) in LUFS to 0.1, None
    of silence or of less than `BLOCK_S`. Where pyloudnorm is not installed it says so, and all are None.
    """
    try:
        pyloudnorm = import_module("pyloudnorm")
    except ImportError:
        text = (
            "pyloudnorm is not installed: the bundle does not say how loud its voices are, and they are"
            " played at their own level (install edged with the extra compile, and build it again)"
        )
        log_event(log, logging.WARNING, text, code="no_loudness")
        return lambda samples, rate: None

    def measure(samples: Samples, rate: int) -> float | None:
        if len(samples) < BLOCK_S * rate:
            return None
        one = pyloudnorm.Meter(rate, block_size=BLOCK_S)
        with np.errstate(divide="ignore"):  # silence
            lufs = float(one.integrated_loudness(samples.astype(float)))
        return round(lufs, 1) if math.isfinite(lufs) else None

    return measure
