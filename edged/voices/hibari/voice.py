"""The hibari voice as one object. Made on the loading thread; its two halves live on their own threads."""

from __future__ import annotations

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.text.document import Said
from edged.voices import load
from edged.voices.api import Frontend, Synthesizer
from edged.voices.hibari.frontend import HibariFrontend
from edged.voices.hibari.g2p import PlainG2P, WordReader
from edged.voices.hibari.synth import HibariSynthesizer
from edged.voices.hibari.tables import Tables

_WARM_UP = "Doctor Zxyrth read three live records at seven thirty, then paid!"  # every path of the G2P


class HibariVoice:
    """Implements `Voice`."""

    frontend: Frontend
    synthesizer: Synthesizer

    def __init__(self, bundle: Bundle, config: settings.Engine, arena: Arena) -> None:
        self.card = load.cards(bundle)[0]
        self._synthesizer = HibariSynthesizer(bundle, config, arena)
        self._tables = Tables(bundle.data_path("tables"))
        self._reader = WordReader(bundle, arena, self._tables.oov)
        self.synthesizer = self._synthesizer
        self.frontend = HibariFrontend(
            PlainG2P(self._tables, self._reader),
            self._tables.symbols,
            max_symbols=bundle.limit("max_symbols"),
            max_frames=bundle.limit("max_frames"),
            max_letters=bundle.limit("max_letters"),
            languages=self.card.languages,
        )

    def warm_up(self) -> None:
        self.frontend.encode([Said(_WARM_UP)])
        self._synthesizer.warm_up()

    def close(self) -> None:
        self._synthesizer.shut()
        self._reader.close()
        self._tables.close()
