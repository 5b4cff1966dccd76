"""A job's parameters: the request over the configuration over the voice, and what is refused by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.controls import COMMON, GENERATIVE, LEVELS, Languages, RunVoices, Sampling
from edged.errors import BadValue
from edged.job import Draw, Params
from edged.params import reading_options
from edged.params import resolve as resolve_among
from edged.protocol import Speak
from edged.settings import Reading, VoiceDefaults
from edged.text.span import Options
from edged.voices.api import VoiceCard

CHAT = VoiceCard("ada", "chattts", ("en",), 24_000, "", "", "", GENERATIVE)
PLAIN = VoiceCard("heart", "hibari", ("en",), 24_000, "", "", "", COMMON)
BAO = VoiceCard("bao", "hibari", ("zh-CN",), 24_000, "", "", "", COMMON)
SLOW = VoiceCard("slow", "hibari", ("zh",), 16_000, "", "", "", COMMON)
TONE = VoiceCard("tone", "tone", ("*",), 24_000, "", "", "", COMMON)
CARDS = {card.name: card for card in (CHAT, PLAIN, BAO, SLOW, TONE)}
NONE = VoiceDefaults()
# A good value of every control, by attribute.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "speed": st.floats(0.5, 2.0),
    "pitch": st.floats(-12.0, 12.0),
    "temperature": st.floats(0.01, 10),
    "top_p": st.floats(0.01, 1),
    "top_k": st.integers(1, 1000),
    "repetition_penalty": st.floats(0.1, 10),
    "oral": st.integers(0, 9),
    "laugh": st.integers(0, 2),
    "break_": st.integers(0, 7),
}
DRAWS = {n: VALUES[n] for n in ("temperature", "top_p", "top_k", "repetition_penalty")}
SOME = st.fixed_dictionaries({}, optional=VALUES)


def resolve(request: Speak, defaults: VoiceDefaults, card: VoiceCard) -> Params:
    return resolve_among(request, defaults, card, CARDS)


def test_every_control_is_a_field_of_requests_and_of_params() -> None:
    fields = {f.encode_name: f.name for f in msgspec.structs.fields(Speak)}
    for name in GENERATIVE:
        assert fields[name] in Params.__dataclass_fields__
    settable = {f.encode_name for f in msgspec.structs.fields(VoiceDefaults)}
    assert settable == {*GENERATIVE, "pitch", "run_voices"} - {"seed", "show_refined", "speaker"}
    assert set(Sampling.__struct_fields__) == set(DRAWS) == set(Draw.__dataclass_fields__)


@given(request=SOME, configured=SOME)
def test_the_request_beats_the_configuration_which_beats_the_voice(
    request: dict[str, Any], configured: dict[str, Any]
) -> None:
    found = resolve(Speak(text="a", seed=3, volume=2.0, **request), VoiceDefaults(**configured), CHAT)
    levels = {"oral", "laugh", "break_"}
    assert found.refine == bool(levels & (set(request) | set(configured)))
    plain = Params()
    for name in VALUES:
        assert getattr(found, name) == request.get(name, configured.get(name, getattr(plain, name)))
    assert (found.seed, found.volume, found.speaker) == (3, 2.0, "")


def test_refine_is_turned_on_and_off() -> None:
    def refined(configured: VoiceDefaults = NONE, **request: Any) -> Params:
        return resolve(Speak(text="a", **request), configured, CHAT)

    assert not refined().refine
    assert refined(refine=True).refine
    assert refined(laugh=0).refine
    assert refined(VoiceDefaults(oral=2)) == Params(refine=True, oral=2)
    assert refined(VoiceDefaults(oral=2), refine=False) == Params()
    assert refined(VoiceDefaults(refine=False), break_=1) == Params(refine=True, break_=1)
    assert refined(VoiceDefaults(oral=2), laugh=1) == Params(refine=True, oral=2, laugh=1)
    assert refined(VoiceDefaults(refine=True), show_refined=True).show_refined


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_of_what_is_turned_off_is_refused(level: str) -> None:
    request = msgspec.convert({"op": "speak", "text": "a", "refine": False, level: 1}, Speak)
    with pytest.raises(BadValue, match=rf"^{level}: .*refine is false"):
        resolve(request, NONE, CHAT)


@pytest.mark.parametrize("refine", [None, False])
def test_there_is_no_refined_text_to_show_without_refine(refine: bool | None) -> None:
    with pytest.raises(BadValue, match=r"^show_refined: .*without refine"):
        resolve(Speak(text="a", refine=refine, show_refined=True), NONE, CHAT)


@pytest.mark.parametrize("name", sorted(set(GENERATIVE) - set(COMMON)))
def test_a_control_that_the_voice_does_not_have_is_refused_by_name(name: str) -> None:
    value: Any = {"refine": True, "show_refined": True, "speaker": "x"}.get(name, 1)
    value = {"zh": {"top_k": 3}} if name == "languages" else value
    request = msgspec.convert({"op": "speak", "text": "a", name: value}, Speak)
    with pytest.raises(BadValue) as caught:
        resolve(request, NONE, PLAIN)
    assert caught.value.message.startswith(f"{name}: ")
    assert "'heart'" in caught.value.message
    assert "speed, seed" in caught.value.hint


def test_a_switch_that_is_off_asks_for_nothing() -> None:
    request = Speak(text="a", refine=False, show_refined=False, speaker="", speed=1.5)
    assert resolve(request, NONE, PLAIN) == Params(speed=1.5)


# -- languages ------------------------------------------------------------------------------------


def by_language(values: dict[str, dict[str, Any]]) -> Languages:
    return Languages(**{language: Sampling(**drawn) for language, drawn in values.items()})


SAMPLED = st.fixed_dictionaries(
    {}, optional={language: st.fixed_dictionaries({}, optional=DRAWS) for language in ("zh", "en")}
)


@given(request=SAMPLED, configured=SAMPLED, plain=SOME)
def test_sampling_of_a_language_is_the_request_s_field_by_field_else_the_configuration_s(
    request: dict[str, Any], configured: dict[str, Any], plain: dict[str, Any]
) -> None:
    defaults = VoiceDefaults(languages=by_language(configured), **plain)
    found = resolve(Speak(text="a", languages=by_language(request)), defaults, CHAT)
    for language in ("zh", "en"):
        spoken = found.of_language(language)
        for name in DRAWS:
            asked = request.get(language, {}).get(name, configured.get(language, {}).get(name))
            assert getattr(spoken, name) == (getattr(found, name) if asked is None else asked)
    assert found.of_language("") == found
    assert found.of_language("fr") == found


def test_what_says_nothing_of_a_language_asks_for_nothing() -> None:
    for languages in (None, Languages(), by_language({"zh": {}})):
        assert resolve(Speak(text="a", languages=languages), NONE, PLAIN) == Params()


# -- who speaks for whom --------------------------------------------------------------------------


def voices_of(card: VoiceCard, configured: RunVoices = NONE.run_voices, **asked: str) -> Any:
    request = Speak(text="a", run_voices=RunVoices(**asked))
    return resolve(request, VoiceDefaults(run_voices=configured), card).run_voices


def test_another_voice_may_speak_a_language() -> None:
    assert voices_of(PLAIN) == {}
    assert voices_of(PLAIN, zh="bao") == {"zh": "bao"}
    assert voices_of(PLAIN, zh="tone", en="spell") == {"zh": "tone", "en": "spell"}
    assert voices_of(PLAIN, RunVoices(zh="bao", en="ada"), zh="spell") == {"zh": "spell", "en": "ada"}


def test_a_configured_voice_that_is_absent_speaks_for_nobody() -> None:
    assert voices_of(PLAIN, RunVoices(zh="gone")) == {}


@pytest.mark.parametrize(
    ("card", "asked", "says", "hint"),
    [
        (PLAIN, {"zh": "bap"}, "run_voices.zh: unknown voice 'bap'", "did you mean 'bao'?"),
        (PLAIN, {"zh": "slow"}, "16000 Hz, 'heart' 24000 Hz", "same sample rate"),
        (PLAIN, {"zh": "ada"}, "'ada' does not speak zh", "voices that can: bao, tone"),
        (SLOW, {"en": "slow"}, "'slow' does not speak en", "no loaded voice of its sample rate can"),
    ],
)
def test_a_voice_that_cannot_speak_for_another_is_refused(
    card: VoiceCard, asked: dict[str, str], says: str, hint: str
) -> None:
    with pytest.raises(BadValue) as caught:
        voices_of(card, **asked)
    assert says in caught.value.message
    assert hint in caught.value.hint


# -- how a text is read ---------------------------------------------------------------------------

CHOICES: dict[str, st.SearchStrategy[Any]] = {
    "numbers": st.sampled_from(("auto", "zh", "en")),
    "digits": st.sampled_from(("auto", "digits")),
    "emoji": st.sampled_from(("skip", "name")),
    "date_order": st.sampled_from(("mdy", "dmy", "ymd")),
}
CHOSEN = st.fixed_dictionaries({}, optional=CHOICES)


@given(request=CHOSEN, configured=CHOSEN, language=st.sampled_from(("", "zh", "en")))
def test_how_a_text_is_read_is_the_request_s_choice_else_the_configuration_s(
    request: dict[str, Any], configured: dict[str, Any], language: Any
) -> None:
    found = reading_options(Speak(text="a", language=language, **request), Reading(**configured))
    plain = Options()
    assert found.language == language
    for name in CHOICES:
        assert getattr(found, name) == request.get(name, configured.get(name, getattr(plain, name)))
