"""The hibari family: one-pass English voices of about 8 MB from the hibari-tts package.

`open_bundle` runs on the loading thread. The text thread then owns the frontend (tables, G2P, word
reader), the engine thread the synthesizer (encoder, decoder, vocoder).
"""

from __future__ import annotations

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.errors import MissingExtra
from edged.voices.api import Voice


def open_bundle(bundle: Bundle, config: settings.Engine, arena: Arena) -> list[Voice]:
    try:
        import hibari.g2p  # noqa: F401
    except ImportError as error:
        raise MissingExtra("hibari", "voice-en", "the voice hibari") from error
    from edged.voices.hibari.voice import HibariVoice

    return [HibariVoice(bundle, config, arena)]
