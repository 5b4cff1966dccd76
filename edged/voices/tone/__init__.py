"""The tone family: any text as a melody, one tone a character, from a network of a few kB.

For testing an installation (engine, socket, loudspeaker) without a speech model, and for this
project's own tests. `open_bundle` runs on the loading thread; see `frontend.py` and `synth.py`.
"""

from __future__ import annotations

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.voices import load
from edged.voices.api import Voice
from edged.voices.tone.frontend import ToneFrontend
from edged.voices.tone.synth import ToneSynthesizer
from edged.voices.tone.voice import ToneVoice


def open_bundle(bundle: Bundle, config: settings.Engine, arena: Arena) -> list[Voice]:
    synthesizer = ToneSynthesizer(bundle, config, arena)
    frontend = ToneFrontend(bundle.limit("max_symbols"))
    return [ToneVoice(load.cards(bundle)[0], frontend, synthesizer)]
