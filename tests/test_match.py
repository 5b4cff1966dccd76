"""Which devices a setting means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged import config
from edged.audio.match import device_settings, entries, entry_of, longest_latency_ms, matching, settings_for
from edged.errors import ConfigError
from edged.settings import Audio, Device

NAMES = ["HDMI 0", "USB Audio: - (hw:1,0)", "usb", "pulse", "default", "x [y]"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("usb", ["usb", "USB Audio: - (hw:1,0)"]),  # the exact name, then parts
        ("USB", ["usb", "USB Audio: - (hw:1,0)"]),  # a pattern without signs is the whole name, in any case
        ("*usb*", ["USB Audio: - (hw:1,0)", "usb"]),
        ("hdmi ?", ["HDMI 0"]),
        ("(hw:1,0)", ["USB Audio: - (hw:1,0)"]),
        ("x [y]", ["x [y]"]),  # though it is a pattern for "x y"
        ("none", []),
    ],
)
def test_exact_then_pattern_then_part(wanted: str, expected: list[str]) -> None:
    assert [NAMES[i] for i in matching(wanted, NAMES)] == expected


names = st.lists(st.text(min_size=1, max_size=8), max_size=5)


@given(st.text(min_size=1, max_size=8), names)
def test_a_name_and_each_of_its_parts_mean_it(name: str, others: list[str]) -> None:
    listed = [*others, name]
    assert listed[matching(name, listed)[0]] == name
    for wanted in (name, name[:1], name[-1:]):
        found = matching(wanted, listed)
        assert len(listed) - 1 in found
        assert len(found) == len(set(found))


def test_the_first_entry_counts() -> None:
    audio = Audio(
        device=["*HDMI*", "usb", ""],
        devices=[Device(match="usb", lead_in_ms=0), Device(match="*", latency_ms=400, keep_open_s=0)],
    )
    assert entries(audio) == ["*HDMI*", "usb", ""]
    assert entries(Audio()) == [""]
    assert [entry_of(audio, name, name == "default") for name in NAMES] == [1, 2, 2, 0, 3, 0]
    usb, pulse = settings_for(audio, "usb"), settings_for(audio, "pulse")
    assert (usb.lead_in_ms, usb.latency_ms, usb.keep_open_s) == (0, 100, 5.0)
    assert (pulse.lead_in_ms, pulse.latency_ms, pulse.keep_open_s) == (150, 400, 0)
    assert longest_latency_ms(audio) == 400
    assert longest_latency_ms(Audio()) == 100
    assert device_settings(Audio(), "usb") is None
    assert settings_for(Audio(), "usb") == Audio()


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        ("  device: []", 2, "device", "expected at least one name"),
        ("  device:\n    - a\n    - [b]", 4, "device[1]", "expected text, got a list"),
        ("  devices:\n  - {match: a, latency_ms: 4}", 3, "devices[0].latency_ms", "from 5 to 2000"),
        ("  devices:\n  - {match: a}\n  - {rate: 8000}", 4, "devices[1]", "needs match"),
        ("  devices:\n  - {mtach: a}", 3, "devices[0].mtach", "did you mean 'match'?"),
        ("  devices:\n  - {match: ''}", 3, "devices[0].match", "text that is not empty"),
        ("  devices:\n  - a", 3, "devices[0]", "expected settings written as"),
        ("  devices: {match: a}", 2, "devices", "expected a list"),
        ("  on_loss: pause", 2, "on_loss", "one of fail, wait"),
    ],
)
def test_a_wrong_device_is_told_with_its_line(text: str, line: int, key: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse(f"audio:\n{text}\n", "edged.yaml")
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (line, f"audio.{key}")
    assert says in str(problem)


def test_devices_are_read() -> None:
    text = "audio: {device: ['*USB*', ''], devices: [{match: '*HDMI*', lead_in_ms: 1500, rate: 44100}]}"
    audio = config.parse(text).audio
    assert audio.device == ["*USB*", ""]
    assert audio.devices == [Device(match="*HDMI*", lead_in_ms=1500, rate=44_100)]
