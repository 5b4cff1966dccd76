"""The hibari voice: reads like its package, sounds like its package, fits its shapes whatever the text."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.errors import MissingExtra
from edged.job import Params, Utterance
from edged.text.document import Said
from edged.text.english import English
from edged.text.prepare import prepare
from edged.text.span import Options, apply
from edged.voices import golden
from tests import bundles

hibari = pytest.importorskip("hibari", reason="the package hibari is not installed (extra voice-en)")

from edged.voices.hibari import dsp, frontend, letters, synth  # noqa: E402

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "On the 3rd of March 2024, 1,250 people paid $9.99 each to hear it read at 7:30 pm.",
    "Dr. Smith lives at St. Mark's; he doesn't record the record.",
    "Close valve 4, please: the pressure is above the limit!",
    "I read it yesterday, and I will read it again to an old friend.",
    "Qwyxl and Zaragoza aren't in every dictionary...",
    "Well-known state-of-the-art U.S. hardware costs 20% less, or £4.50.",
    "“Stop!” she said (quietly). Café, naïve, Łódź.",
    "NASA and the FBI met mother-in-law's cousin on 2024-05-06 at 10/11.",
    "Tanks 1-4 hold 3.75 km of pipe at -5 °C; see www.example.com/help.",
]


@pytest.fixture(scope="module")
def voice():
    return bundles.voice(bundles.hibari())


@pytest.fixture(scope="module")
def package():
    return hibari.Hibari()


@pytest.fixture(scope="module")
def bundle():
    return Bundle.load(bundles.hibari())


def read(voice, text, **params):
    return list(prepare(text, voice.frontend, params=Params(**params)))


def speak(voice, utterance, **params):
    stream = voice.synthesizer.open(utterance, Params(**params))
    (piece,) = voice.synthesizer.step([stream])
    voice.synthesizer.close(stream)
    assert piece.last
    return piece.samples.copy()


# -- text ---------------------------------------------------------------------------------------


def test_words_read_as_in_the_package(voice, package):
    for text in SENTENCES:
        spans = English().spans(text, Options())
        words = apply(text, [replace(span, spoken=re.sub(r"\bA\b", "eh", span.spoken)) for span in spans])
        expected = [
            tuple(package.ids(phonemes)) for phonemes in package.phonemize(letters.english(words, []))
        ]
        said = [number for u in read(voice, text) for number in u.symbols if number]
        assert said == [number for ids in expected for number in ids if number], text


def test_sentences_are_read_beside_each_other_as_alone(voice):
    alone = [u.symbols for sentence in SENTENCES for u in read(voice, sentence)]
    assert [u.symbols for u in read(voice, " ".join(SENTENCES))] == alone


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Pump 3 runs at 0.5 mW.", "Pump three runs at zero point five milliwatts."),
        ("Pump 3 runs at 0.5 MW.", "Pump three runs at zero point five megawatts."),
        ("Use an M12x1.75 bolt.", "Use an M twelve by one point seven five bolt."),
        ("Limit: -40 °C to 85 °C", "Limit: minus forty degrees Celsius to eighty-five degrees Celsius"),
        ("Call 555-0199", "Call five five five, zero one nine nine"),
        ("See Rev. A of line 4A", "See Revision eh of line four eh"),  # the letter, not the article
    ],
)
def test_figures_and_codes_are_read_as_words(voice, written, spoken):
    assert [u.symbols for u in read(voice, written)] == [u.symbols for u in read(voice, spoken)]


def test_every_case_of_the_table_has_a_sound(voice):
    table = Path(__file__).parent / "data" / "readings_en.tsv"
    for line in table.read_text(encoding="utf-8").splitlines():
        _, *case = line.split("\t")
        if case and any(c.isalpha() for c in case[1]):
            assert read(voice, case[0]), case[0]


def test_markup_is_text(voice):
    (plain,) = read(voice, "say tomato now")
    (marked,) = read(voice, "say [tomato](/bɑd/) now")
    assert len(marked.symbols) > len(plain.symbols)  # everything in the brackets is read


def test_paragraphs_pause_and_sentences_do_not(voice):
    text = "One. Two.\nThree.\n\n  \nFour. Five.\n\n..."
    assert [u.pause_s for u in read(voice, text)] == [0.0, 0.0, 0.3, 0.0, 0.0]
    assert [u.index for u in read(voice, text)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "text",
    [
        "a" * 5_000,
        "x" * 500,
        "A-" * 2_500,
        "a.b/c_" * 800,
        "9" * 5_000,
        "1,000" * 1_000,
        "0." + "1" * 4_000,
        "word " * 1_000,
        "clause, " * 600,
        "[](" * 1_600,
        "'" * 4_000 + "s",
        "É" * 3_000,
        "$1-2:3/4 " * 500,
        "e.g. Mr. A. B. " * 300,
        "\u00b2\u00bd\u2460\u0663 " * 1_000,
    ],
)
def test_hostile_texts_fit_and_do_not_stall(voice, bundle, text, speed):
    most = bundle.limit("max_symbols")
    start = time.perf_counter()
    utterances = read(voice, text, speed=speed)
    assert time.perf_counter() - start < 10  # a stall would be minutes
    assert all(3 <= len(u.symbols) <= most for u in utterances)
    assert [u.index for u in utterances] == list(range(len(utterances)))


def test_long_text_fits_the_frames_at_every_speed(voice):
    text = " ".join(s.rstrip(".!") for s in SENTENCES[:5]) * 3
    for speed in (0.5, 0.7, 1.0, 1.5, 2.0):
        for utterance in read(voice, text, speed=speed):
            stream = voice.synthesizer.open(utterance, Params(speed=speed))
            (piece,) = voice.synthesizer.step([stream])
            assert piece.warning == ""


def test_the_first_sentence_does_not_wait_for_the_rest(voice):
    text = "Hello there. " + "This is another sentence with several words. " * 2_000
    start = time.perf_counter()
    first = next(prepare(text, voice.frontend))
    assert time.perf_counter() - start < 0.3
    assert first.symbols == read(voice, "Hello there.")[0].symbols


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8"), max_size=300), st.floats(0.5, 2.0))
def test_no_text_breaks_the_frontend(voice, text, speed):
    limit = voice.frontend.limit(Params(speed=speed))
    for utterance in read(voice, text, speed=speed):
        assert utterance.symbols[0] == utterance.symbols[-1] == 0
        assert len(utterance.symbols) <= limit + frontend.PADS


@given(st.text("ab ,.;-", max_size=200), st.integers(1, 40))
def test_pieces_keep_everything_but_spaces(text, limit):
    cut = list(frontend.pieces(text, limit))
    assert all(0 < len(piece) <= limit for piece in cut)
    assert "".join(cut).replace(" ", "") == text.replace(" ", "")


def test_pieces_prefer_clauses_then_spaces():
    assert list(frontend.pieces("one two, three four five", 12)) == ["one two,", "three four", "five"]
    assert list(frontend.pieces("abcdefgh", 3)) == ["abc", "def", "gh"]


@pytest.mark.parametrize(
    ("written", "plain", "lost"),
    [
        ("Żubr, Nguyễn", "Zubr, Nguyen", ""),
        ("Łódź straße Øre", "Lodz strasse Ore", ""),
        ("Café", "Cafe", ""),
        ("Đ ĳ Ǆ Æ", "D ij DZ Ae", ""),
        ("a\u0298b\u0298", "ab", "\u0298\u0298"),
    ],
)
def test_letters_that_english_has_not_are_the_nearest_or_counted(voice, written, plain, lost):
    found = []
    assert letters.english(written, found) == plain
    assert "".join(found) == lost
    encoded = voice.frontend.encode([Said(written, "en")])
    assert encoded.ids == voice.frontend.encode([Said(plain, "en")]).ids
    assert "".join(encoded.lost) == lost


def test_every_latin_letter_sounds_or_is_counted(voice):
    for code in range(0xC0, 0x250):
        if chr(code).isalpha():
            encoded = voice.frontend.encode([Said(f"{chr(code)}", "en")])
            assert encoded.lost or any(encoded.ids), hex(code)


def test_a_word_that_breaks_the_g2p_is_left_out(caplog):
    def g2p(text):
        if "secret" in text:
            raise IndexError(text)
        return text

    reader = frontend.HibariFrontend(
        g2p, {c: i for i, c in enumerate("abcdefghijklmnopqrstuvwxyz ", 1)},
        max_symbols=100, max_frames=1000, max_letters=24,
    )  # fmt: skip
    encoded = reader.encode([Said("one secret two")])
    assert encoded.lost == tuple("secret")
    (utterance,) = prepare("one secret two", reader)
    assert len(utterance.symbols) == len("one two") + 2
    assert "secret" not in caplog.text


# -- sound --------------------------------------------------------------------------------------


class Silence:
    """Stands for the package's random generator: no noise."""

    def standard_normal(self, shape, dtype):
        return np.zeros(shape, dtype)


def predicted(package, sentence, speed=1.0):
    ids = package.ids(package.phonemize(sentence)[0])
    outputs = package.sess.run(
        None, {"ids": np.array([ids], np.int64), "speed": np.array([speed], np.float32)}
    )
    return [part[0] for part in outputs]


@pytest.mark.parametrize("sentence", [*SENTENCES, "No.", "Oh"])
def test_the_vocoder_matches_the_package(package, sentence):
    *spectra, f0 = predicted(package, sentence)
    ours = dsp.Vocoder(Arena(), "test", len(f0))
    rows = np.ascontiguousarray(np.concatenate(spectra).T)
    expected = hibari.dsp.synth(*spectra, f0, Silence())
    np.testing.assert_allclose(ours.synthesize(rows, f0, None), expected, atol=1e-4)


def test_the_vocoder_matches_at_any_number_of_frames(package):
    *spectra, f0 = predicted(package, SENTENCES[1])
    ours = dsp.Vocoder(Arena(), "test", len(f0))
    for count in (dsp.MIN_FRAMES, 5, dsp.BLOCK - 1, dsp.BLOCK, dsp.BLOCK + 1, 3 * dsp.BLOCK, len(f0)):
        parts = [part[:, :count] for part in spectra]
        rows = np.ascontiguousarray(np.concatenate(parts).T)
        expected = hibari.dsp.synth(*parts, f0[:count], Silence())
        np.testing.assert_allclose(ours.synthesize(rows, f0[:count], None), expected, atol=1e-4)


def test_the_noise_has_the_package_s_level(package):
    *spectra, f0 = predicted(package, SENTENCES[1])
    rows = np.ascontiguousarray(np.concatenate(spectra).T)
    ours = dsp.Vocoder(Arena(), "test", len(f0))
    quiet = ours.synthesize(rows, f0, None).copy()
    levels = []
    for seed in range(8):
        noise = np.random.default_rng(seed)
        mine = ours.synthesize(rows, f0, noise) - quiet
        theirs = hibari.dsp.synth(*spectra, f0, noise) - quiet
        levels.append([golden.bands_db(x, dsp.RATE) for x in (mine, theirs)])
    mine, theirs = np.mean(levels, axis=0)
    np.testing.assert_allclose(mine, theirs, atol=1.0)  # dB


def test_a_sentence_has_the_package_s_length_and_spectrum(voice, package):
    for sentence in SENTENCES[:4]:
        (utterance,) = read(voice, sentence)
        mine = speak(voice, utterance)
        theirs = package.from_ids(list(utterance.symbols), 1.0, np.random.default_rng(0))
        assert len(mine) == len(theirs)
        np.testing.assert_allclose(golden.bands_db(mine, 24_000), golden.bands_db(theirs, 24_000), atol=1.0)


def test_speed(voice):
    (utterance,) = read(voice, SENTENCES[0])
    normal = len(speak(voice, utterance))
    assert 1.7 * normal < len(speak(voice, utterance, speed=0.5)) < 2.2 * normal
    assert 0.45 * normal < len(speak(voice, utterance, speed=2.0)) < 0.65 * normal
    assert len(speak(voice, utterance, speed=100.0)) == len(speak(voice, utterance, speed=2.0))


def test_a_seed_gives_the_same_samples_whatever_came_between(voice):
    first, second = read(voice, "The pump is off. The pump is on.")
    once = speak(voice, second, seed=5)
    speak(voice, first, seed=9, speed=0.6)
    np.testing.assert_array_equal(once, speak(voice, second, seed=5))
    other = speak(voice, second, seed=6)
    assert len(other) == len(once)
    assert not np.array_equal(once, other)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 177), min_size=1, max_size=318), st.floats(0.5, 2.0))
def test_any_symbols_that_fit_are_spoken(voice, symbols, speed):
    samples = speak(voice, Utterance(0, (0, *symbols, 0)), speed=speed)
    assert np.isfinite(samples).all()
    assert len(samples) <= 1_840 * dsp.HOP


def test_too_long_an_utterance_is_compressed_with_a_warning(voice, bundle):
    long = Utterance(0, (0, *[43] * (bundle.limit("max_symbols") - 2), 0))
    stream = voice.synthesizer.open(long, Params(speed=0.5))
    (piece,) = voice.synthesizer.step([stream])
    assert piece.warning == synth.COMPRESSED
    assert len(piece.samples) <= bundle.limit("max_frames") * dsp.HOP


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(0, 500))
def test_compress(durations, more):
    most = len(durations) + more
    changed = np.array(durations)
    synth.compress(changed, most)
    assert changed.sum() <= most
    assert (changed >= 1).all()


def test_the_golden_utterance(voice, bundle):
    golden.check(voice, bundle.manifest.golden)


def test_memory_is_planned_and_lean(bundle):
    from edged import settings as configuration
    from edged.voices.load import open_bundle

    arena = Arena()
    (opened,) = open_bundle(bundle, configuration.Engine(), arena)
    arena.seal()
    opened.warm_up()  # allocates nothing in the arena
    assert arena.nbytes < 40e6
    assert all(row.name.startswith("hibari.") for row in arena.plan())
    opened.close()


def test_without_the_package_the_extra_is_named(bundle, monkeypatch):
    from edged import settings as configuration
    from edged.voices.load import open_bundle

    monkeypatch.setitem(sys.modules, "hibari.g2p", None)
    arena = Arena()
    with pytest.raises(MissingExtra, match=r"\[voice-en\]"):
        open_bundle(bundle, configuration.Engine(), arena)
    assert arena.nbytes == 0
