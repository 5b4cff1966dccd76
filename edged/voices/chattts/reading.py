"""What reads a text to a ChatTTS voice. Made once for a bundle on the loading thread; then text thread.

The model knows Chinese and English words and no digits, so no digit may be left. Neighbours: `voice.py` makes
it, `frontend.py` uses it; the compiler does too.
"""

from __future__ import annotations

from edged.text.chinese.reader import Chinese
from edged.text.english.reader import English
from edged.text.runs import MixedReader


def reader() -> MixedReader:
    """Raises `MissingExtra` where the extra `chattts` is not installed."""
    return MixedReader({"zh": Chinese(), "en": English()})
