"""A job's parameters: the request over the configuration over the voice, and what is refused by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.controls import COMMON, GENERATIVE, LEVELS
from edged.errors import BadValue
from edged.job import Params
from edged.params import resolve
from edged.protocol import Speak
from edged.settings import VoiceDefaults
from edged.voices.api import VoiceCard

CHAT = VoiceCard("ada", "chattts", ("en",), 24_000, "", "", "", GENERATIVE)
PLAIN = VoiceCard("heart", "hibari", ("en",), 24_000, "", "", "", COMMON)
NONE = VoiceDefaults()
# A good value of every control, by attribute.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "speed": st.floats(0.5, 2.0),
    "temperature": st.floats(0.01, 10),
    "top_p": st.floats(0.01, 1),
    "top_k": st.integers(1, 1000),
    "repetition_penalty": st.floats(0.1, 10),
    "oral": st.integers(0, 9),
    "laugh": st.integers(0, 2),
    "break_": st.integers(0, 7),
}
SOME = st.fixed_dictionaries({}, optional=VALUES)


def test_every_control_is_a_field_of_requests_and_of_params() -> None:
    fields = {f.encode_name: f.name for f in msgspec.structs.fields(Speak)}
    for name in GENERATIVE:
        assert fields[name] in Params.__dataclass_fields__
    settable = {f.encode_name for f in msgspec.structs.fields(VoiceDefaults)}
    assert settable == set(GENERATIVE) - {"seed", "show_refined", "speaker"}


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
    request = msgspec.convert({"op": "speak", "text": "a", name: value}, Speak)
    with pytest.raises(BadValue) as caught:
        resolve(request, NONE, PLAIN)
    assert caught.value.message.startswith(f"{name}: ")
    assert "'heart'" in caught.value.message
    assert "speed, seed" in caught.value.hint


def test_a_switch_that_is_off_asks_for_nothing() -> None:
    request = Speak(text="a", refine=False, show_refined=False, speaker="", speed=1.5)
    assert resolve(request, NONE, PLAIN) == Params(speed=1.5)
