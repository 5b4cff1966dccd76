"""The tone voice as one object. Made on the loading thread; its two halves live on their own threads."""

from __future__ import annotations

from edged.voices.api import Frontend, Synthesizer, VoiceCard
from edged.voices.tone.synth import ToneSynthesizer


class ToneVoice:
    """Implements `Voice`."""

    card: VoiceCard
    frontend: Frontend
    synthesizer: Synthesizer

    def __init__(self, card: VoiceCard, frontend: Frontend, synthesizer: ToneSynthesizer) -> None:
        self.card = card
        self.frontend = frontend
        self.synthesizer = synthesizer
        self._shut = synthesizer.shut
        self._warm_up = synthesizer.warm_up

    def warm_up(self) -> None:
        self._warm_up()

    def close(self) -> None:
        self._shut()
