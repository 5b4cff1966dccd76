"""The chattts family: autoregressive Chinese and English voices from a ChatTTS checkpoint.

`open_bundle` runs on the loading thread. The text thread then owns the frontends (tokenizer, prompts), the
engine thread the synthesizer (generator, vocoder). Speakers and tokens have modules of their own, which the
compiler uses too.
"""

from __future__ import annotations

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.errors import MissingExtra
from edged.voices.api import Voice


def open_bundle(bundle: Bundle, config: settings.Engine, arena: Arena) -> list[Voice]:
    try:
        import tokenizers  # noqa: F401
    except ImportError as error:
        raise MissingExtra("tokenizers", "chattts", "a ChatTTS voice") from error
    from edged.voices.chattts.voice import open_voices

    return open_voices(bundle, config, arena)
