"""The loudspeaker's volume control: how loud what is already in the ring is heard, without a click.

Any thread sets it; the ring's reader, the PortAudio callback, calls `apply`, so that a change is heard at
once and not after the seconds that are in the ring. Neighbours: `player` sets it, `ring` applies it,
`segment` applies the part above 1.
"""

from __future__ import annotations

import numpy as np

from edged.controls import VOLUMES
from edged.errors import BadValue
from edged.job import Samples

RAMP_FRAMES = 960  # 20 ms at 48 kHz for any change: too slow to click, too fast to be heard as fading


class Fader:
    """The gain goes to its target in a straight line of `RAMP_FRAMES` frames, over as many calls as it takes.

    volume: a factor from 0 to 4. What of it is above 1 could lift limited audio over its ceiling: this
    `boost` is for who limits it, and so reaches only what is not in the ring yet. muted: nothing is heard; it
    is apart from the volume, so that threads that set one each need no lock.
    """

    def __init__(self, volume: float = 1.0) -> None:
        """Raises `BadValue`, as `set_volume` does."""
        self.muted = False
        self.set_volume(volume)
        # The reader's only.
        self._gain = self._to = self._level
        self._at = RAMP_FRAMES  # frames of the ramp that were applied
        self._parts: Samples = np.linspace(0.0, 1.0, RAMP_FRAMES + 1, dtype=np.float32)[1:, np.newaxis]
        self._ramp: Samples = np.empty((RAMP_FRAMES, 1), np.float32)

    @property
    def boost(self) -> float:
        return max(1.0, self.volume)

    def set_volume(self, volume: float) -> None:
        least, most = VOLUMES
        if not least <= volume <= most:
            raise BadValue(f"volume: {volume} is out of range", f"it is between {least:g} and {most:g}")
        self.volume = volume

    @property
    def _level(self) -> float:
        return 0.0 if self.muted else min(1.0, self.volume)

    def apply(self, out: Samples, heard: int, level: float = 1.0) -> None:
        """Multiplies `out` (frames x channels) in place; does nothing at a steady gain of 1.

        heard: frames of it that are audio. Where there are none, a change needs no ramp. level: of the job
        that is heard, a factor of its own. It neither locks nor makes an array.
        """
        target = self._level * level
        if not heard:
            self._gain = self._to = target
            self._at = RAMP_FRAMES
            return
        if target != self._to:
            self._to, self._at = target, 0
            np.multiply(self._parts, target - self._gain, out=self._ramp)
            np.add(self._ramp, self._gain, out=self._ramp)
        count = min(len(out), RAMP_FRAMES - self._at)
        if count:
            ramp = self._ramp[self._at : self._at + count]
            np.multiply(out[:count], ramp, out=out[:count])
            self._at += count
            self._gain = self._to if self._at == RAMP_FRAMES else float(ramp[-1, 0])
        if count < len(out) and self._gain != 1.0:
            np.multiply(out[count:], self._gain, out=out[count:])
