"""The tone voice: any text, any speed, within its shapes."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.errors import EngineError
from edged.job import Params, Utterance
from edged.settings import Engine
from edged.text.prepare import prepare
from edged.voices import golden
from edged.voices.load import open_bundle
from edged.voices.tone.frontend import symbol
from tests import bundles


@pytest.fixture(scope="module")
def voice():
    return bundles.voice(bundles.tone())


def say(voice, text, **params):
    return golden.speak(voice, text, Params(**params))


@settings(deadline=None)
@given(st.text(), st.floats(0.5, 2.0))
def test_any_text_fits_and_sounds(text, speed):
    voice = bundles.voice(bundles.tone())
    most = Bundle.load(bundles.tone(), verify=False).limit("max_symbols")
    utterances = list(prepare(text, voice.frontend, params=Params(speed=speed)))
    assert [u.index for u in utterances] == list(range(len(utterances)))
    assert all(1 <= len(u.symbols) <= most and any(u.symbols) for u in utterances)
    assert bool(utterances) == any(map(symbol, text))
    samples = say(voice, text, speed=speed)
    assert np.isfinite(samples).all()
    assert np.abs(samples).max(initial=0.0) <= 0.31


def test_no_character_with_a_sound_is_lost(voice):
    text = "word " * 300 + "x" * 1000 + ". Done!"
    utterances = prepare(text, voice.frontend)
    spoken = [s for u in utterances for s in u.symbols if s]
    assert spoken == [symbol(c) for c in text if symbol(c)]


def test_tones_do_not_click(voice):
    samples = say(voice, "Hello world 123")
    steepest = 0.3 * 2 * np.pi * 2 * 880 / 24_000  # the highest pitch at full amplitude
    assert np.abs(np.diff(samples)).max() < steepest * 1.5
    assert abs(samples[0]) < 1e-3
    assert abs(samples[-1]) < 1e-3


def test_speed_changes_the_length(voice):
    lengths = [len(say(voice, "one two three", speed=s)) for s in (0.5, 1.0, 2.0)]
    assert lengths[0] == 2 * lengths[1] == 4 * lengths[2]
    assert lengths[1] == 13 * 8 * 240


def test_the_same_text_gives_the_same_samples_whatever_came_between(voice):
    first = say(voice, "Alarm in hall four.")
    say(voice, "x" * 150, speed=0.5)
    np.testing.assert_array_equal(first, say(voice, "Alarm in hall four."))
    assert not np.array_equal(first, say(voice, "Alarm in hall five."))


def test_sentences_come_one_by_one(voice):
    endless = prepare("One. Two. " * 10_000, voice.frontend)
    start = time.perf_counter()
    first = list(itertools.islice(endless, 3))
    assert [u.index for u in first] == [0, 1, 2]
    assert time.perf_counter() - start < 0.5


def test_a_blank_line_is_a_pause(voice):
    pauses = [u.pause_s for u in prepare("One. Two\nthree\n\nFour.\n", voice.frontend)]
    made = voice.frontend.pauses
    assert pauses == [0.0, made.line, made.paragraph, 0.0]


TEXTS = st.lists(
    st.tuples(st.lists(st.integers(0, 21), min_size=1, max_size=60), st.floats(0.5, 2.0)),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize(("rate", "work"), [(24_000, 0), (22_050, 0), (16_000, 3)])
@settings(deadline=None, max_examples=25)
@given(rows=TEXTS)
def test_an_utterance_sounds_the_same_in_any_row_of_any_batch(rate, work, rows):
    synthesizer = bundles.voice(bundles.tone(rate=rate, work=work)).synthesizer
    streams = [synthesizer.open(Utterance(0, tuple(symbols)), Params(speed=v)) for symbols, v in rows]
    together = [piece.samples.copy() for piece in synthesizer.step(streams)]
    for stream, samples in zip(streams, together, strict=True):
        np.testing.assert_array_equal(samples, synthesizer.step([stream])[0].samples)


@given(a=st.integers(1, 160), b=st.integers(1, 160), speed=st.floats(0.5, 2.0))
def test_utterances_of_a_length_class_differ_by_less_than_a_factor_of_two(a, b, speed):
    bucket = bundles.voice(bundles.tone()).synthesizer.bucket
    first, second = (bucket(Utterance(0, (1,) * n), Params(speed=speed)) for n in (a, b))
    assert first > 0
    assert first != second or max(a, b) < 2 * min(a, b)


def test_the_settings_say_how_many_rows_there_are():
    bundle = Bundle.load(bundles.tone())
    for batch in (1, 3):
        arena = Arena()
        (voice,) = open_bundle(bundle, Engine(batch=batch), arena)
        voice.warm_up()
        assert voice.synthesizer.max_batch == batch
        assert {row.name: row.shape[0] for row in arena.plan()}["tone.tone.samples"] == batch


@pytest.mark.parametrize("rate", [16_000, 22_050])
def test_other_sample_rates(rate):
    voice = bundles.voice(bundles.tone(rate=rate))
    assert voice.card.sample_rate == rate
    samples = say(voice, "aaaaaaaaaa")
    spectrum = np.abs(np.fft.rfft(samples))
    peak = spectrum.argmax() * rate / len(samples)
    reference = say(bundles.voice(bundles.tone()), "aaaaaaaaaa")
    expected = np.abs(np.fft.rfft(reference)).argmax() * 24_000 / len(reference)
    assert abs(peak - expected) < 15  # Hz


def test_a_slow_voice_really_computes():
    fast, slow = bundles.voice(bundles.tone()), bundles.voice(bundles.tone(work=150))
    utterance = Utterance(0, (1,) * 150)

    def seconds(voice):
        start = time.process_time()
        voice.synthesizer.step([voice.synthesizer.open(utterance, Params(speed=0.5))])
        return time.process_time() - start

    assert seconds(slow) > 10 * seconds(fast)
    np.testing.assert_array_equal(say(fast, "same sound"), say(slow, "same sound"))


def test_the_card_and_the_golden_utterance(voice):
    bundle = Bundle.load(bundles.tone())
    assert (voice.card.name, voice.card.family, voice.card.languages) == ("tone", "tone", ("*",))
    golden.check(voice, bundle.manifest.golden)


def test_a_voice_that_sounds_different_fails_its_golden_check(voice):
    recorded = Bundle.load(bundles.tone()).manifest.golden
    import msgspec

    for changed in (
        msgspec.structs.replace(recorded, samples=recorded.samples + 300),
        msgspec.structs.replace(recorded, bands_db=tuple(level - 3 for level in recorded.bands_db)),
    ):
        with pytest.raises(EngineError, match="voice tone"):
            golden.check(voice, changed)
