"""The voices of a ChatTTS bundle: one model, one synthesizer, a frontend for each named speaker.

Made on the loading thread; the frontends then live on the text thread, the synthesizer on the engine
thread. Neighbours: everything of this package.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edged import settings
from edged.bundle import Bundle
from edged.engine import preflight, select
from edged.engine.api import Engine, TensorSpec
from edged.engine.buffers import Arena
from edged.engine.request import Decoder, Request
from edged.errors import BadSpeaker, BundleManifestInvalid, EdgedError
from edged.text.document import Said
from edged.voices import load
from edged.voices.api import Frontend, Synthesizer, Voice, VoiceCard
from edged.voices.chattts import data, limits, speakers
from edged.voices.chattts.frontend import ChatFrontend
from edged.voices.chattts.generator import Generator
from edged.voices.chattts.reading import reader
from edged.voices.chattts.refine import Vocabulary
from edged.voices.chattts.sound import HIDDEN, Sound, rings
from edged.voices.chattts.synth import ChatSynthesizer, SpeakerData
from edged.voices.chattts.tokens import Tokens
from edged.voices.demand import interface, slots

DECODER_INDEX = "decoder"  # among the data of a bundle, and
DECODER = "decoder-"  # before the name of the level, a library
_WARM_UP = "The quick brown fox, three times. 四是四。"


class ChatVoice:
    """Implements `Voice`. The first one of a bundle warms up and closes what they share."""

    frontend: Frontend
    synthesizer: Synthesizer

    def __init__(
        self, card: VoiceCard, frontend: ChatFrontend, synthesizer: ChatSynthesizer, first: bool
    ) -> None:
        self.card = card
        self.frontend = frontend
        self.synthesizer = synthesizer
        self._shared = synthesizer if first else None

    def warm_up(self) -> None:
        self.frontend.encode([Said(_WARM_UP)])
        if self._shared is not None:
            self._shared.warm_up()

    def close(self) -> None:
        if self._shared is not None:
            self._shared.shut()


def open_voices(bundle: Bundle, config: settings.Engine, arena: Arena) -> list[Voice]:
    limits.check(bundle)
    tokens = Tokens(bundle.data_path("tokenizer"))
    people = data.read(bundle.data_path("speakers"), data.Speakers).voices
    by_name = {card.name: card for card in load.cards(bundle)}
    if sorted(by_name) != sorted(person.name for person in people):
        raise BundleManifestInvalid(
            f"{bundle.path}: the manifest has the voices {', '.join(by_name)}, the data file speakers has "
            f"{', '.join(person.name for person in people)}"
        )
    sampling = data.read(bundle.data_path("sampling"), data.Sampling)
    words = reader()
    samples = [tokens.speech(words.read(person.text)).ids for person in people]
    rows = _rows(bundle, people, samples)
    gpt, vocoder = engines = _engines(bundle, config, arena)
    try:
        synthesizer = _synthesizer(bundle, gpt, vocoder, arena, rows, sampling, tokens)
    except BaseException:
        for one in reversed(engines):
            with suppress(EdgedError):  # the first error counts
                one.close()
        raise
    voices: list[Voice] = []
    for index, (person, sample) in enumerate(zip(people, samples, strict=True)):
        frontend = ChatFrontend(
            tokens,
            languages=by_name[person.name].languages,
            most=bundle.limit("max_text"),
            speaker=index,
            embedded=bool(person.code),
            sample=sample,
            speed=sampling.speed,
            hidden=bundle.limit("hidden"),
        )
        voices.append(ChatVoice(by_name[person.name], frontend, synthesizer, index == 0))
    return voices


def _rows(
    bundle: Bundle, people: Sequence[data.Speaker], samples: Sequence[Sequence[int]]
) -> list[SpeakerData]:
    """Raises `BundleManifestInvalid` for speakers that are none: here it is the bundle's fault."""
    rows = []
    for person, sample in zip(people, samples, strict=True):
        try:
            row = speaker_data(bundle, person)
            check_prompt(bundle, person.name, len(sample) + len(row.prompt))
        except BadSpeaker as error:
            raise BundleManifestInvalid(
                f"{bundle.path}: the speaker {person.name!r}: {error.message}", error.hint or None
            ) from error
        rows.append(row)
    return rows


def _synthesizer(
    bundle: Bundle,
    gpt: Engine,
    vocoder: Engine,
    arena: Arena,
    rows: Sequence[SpeakerData],
    sampling: data.Sampling,
    tokens: Tokens,
) -> ChatSynthesizer:
    generator = Generator(gpt, bundle.limit("prompt_piece"))
    vocabulary = Vocabulary(tokens.kinds(), bundle.limit("max_text"), tokens.written)
    sound = Sound(vocoder, arena, bundle.manifest.name, generator.rows)
    # Bundles of before have no such limit: their vocoder took an utterance as a whole.
    most = bundle.manifest.limits.get("max_steps", sound.longest)
    return ChatSynthesizer(generator, sound, rows, sampling, vocabulary, most)


def _engines(bundle: Bundle, config: settings.Engine, arena: Arena) -> list[Engine]:
    """The decoder network and the vocoder. What goes from one to the other stays where it was made."""
    gpt, vocoder = (request(bundle, name, config) for name in ("gpt", "vocoder"))
    lanes = rings(gpt.slots, vocoder.inputs)
    both = [
        replace(gpt, resident=gpt.resident | {HIDDEN}),
        replace(vocoder, resident=vocoder.resident | {HIDDEN}, work=(lanes,)),
    ]
    return select.open_engines(both, bundle.manifest.backend, arena, config)


def engine(bundle: Bundle, name: str, config: settings.Engine, arena: Arena) -> Engine:
    """One engine alone, for checks: what it makes can be looked at, all but its memory of the past.

    Raises `GpuUnusable` before native code that needs a GPU is called.
    """
    if bundle.manifest.tensorrt is not None:
        preflight.check(bundle.manifest.tensorrt, math.inf)  # this is no part of the daemon's memory
    (opened,) = select.open_engines([request(bundle, name, config)], bundle.manifest.backend, arena, config)
    return opened


def request(bundle: Bundle, name: str, config: settings.Engine) -> Request:
    entry = bundle.engine(name)
    inputs, outputs = interface(bundle, entry, config)
    return Request(
        f"{bundle.manifest.name}.{name}",
        bundle.path / entry.file,
        inputs,
        outputs,
        decoder=decoder_files(bundle) if name == "gpt" else None,
        resident=kept((*inputs, *outputs)),
        slots=slots(bundle, config),
        plugin=plugin(bundle),
    )


def kept(specs: Iterable[TensorSpec]) -> frozenset[str]:
    """The tensors that an engine keeps from one run to the next, and that nobody else looks at."""
    return frozenset(spec.name for spec in specs if spec.name.startswith(("past_", "present_")))


def plugin(bundle: Bundle) -> Path | None:
    """The library that the plans of a TensorRT bundle need, if they need one."""
    record = bundle.manifest.tensorrt
    return bundle.data_path(record.plugin) if record is not None and record.plugin else None


def decoder_files(bundle: Bundle) -> Decoder | None:
    """What a bundle has of a native decoder."""
    files = {entry.name: bundle.path / entry.file for entry in bundle.manifest.data}
    libraries = {name.removeprefix(DECODER): path for name, path in files.items() if name.startswith(DECODER)}
    if not libraries or DECODER_INDEX not in files or "gpt-weights" not in files:
        return None
    return Decoder(files[DECODER_INDEX], files["gpt-weights"], libraries)


def speaker_data(bundle: Bundle, person: data.Speaker) -> SpeakerData:
    """A speaker's codes as the network takes them. Raises `BadSpeaker`."""
    hidden, codebooks = bundle.limit("hidden"), bundle.limit("codebooks")
    vector: NDArray[np.float32] = np.zeros(hidden, np.float32)
    prompt = np.zeros((0, codebooks), np.int64)
    if person.code:
        vector = speakers.embedding(speakers.decode_speaker(person.code, hidden))
    if person.prompt:
        prompt = speakers.decode_prompt(person.prompt, codebooks, bundle.limit("audio_tokens") - 1).T
    return SpeakerData(vector, prompt)


def sample_limit(bundle: Bundle) -> int:
    """Most tokens of a recording, its text and its codes, beside the longest text of an utterance."""
    return bundle.limit("max_prompt") - bundle.limit("max_text") - limits.CONTROLS


def check_prompt(bundle: Bundle, name: str, sample: int) -> None:
    """sample: tokens of a recording. Raises `BadSpeaker`."""
    most = sample_limit(bundle)
    if sample > most:
        raise BadSpeaker(
            f"the recording of voice {name!r} takes {sample} tokens; this bundle has room for {most}",
            "enroll a shorter recording (47 tokens a second), or build the bundle with more --positions",
        )
