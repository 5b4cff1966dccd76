"""Speaker, prompt and statistics strings: bit-exact round trips, and a typed error for every damage."""

from __future__ import annotations

import contextlib
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.errors import BadSpeaker
from edged.voices.chattts import speakers

HIDDEN = 768
GENERATOR = np.random.default_rng(5)
VECTOR = GENERATOR.normal(0, 3, HIDDEN).astype(np.float16)
CODES = GENERATOR.integers(0, 625, (4, 61))

# Made by the published codec: bytes(range(200, 200 + n)) for each n.
PUBLISHED = {
    1: "\u8000\u3d01",
    2: "\u8032\u5e00\u3d02",
    3: "\u8032\u6aa0\u3d03",
    4: "\u8032\u6aac\u7a00\u3d04",
    5: "\u8032\u6aac\u7d30\u3d05",
    6: "\u8032\u6aac\u7d33\u5b00\u3d06",
    7: "\u8032\u6aac\u7d33\u5bce",
    9: "\u8032\u6aac\u7d33\u5bce\u81f4\u4e00\u3d02",
    13: "\u8032\u6aac\u7d33\u5bce\u81f4\u5b1d\u594f\u6200\u3d06",
    14: "\u8032\u6aac\u7d33\u5bce\u81f4\u5b1d\u594f\u62d5",
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_base16384_is_the_published_codec(size: int) -> None:
    data = bytes(range(200, 200 + size))
    assert speakers.pack_text(data) == PUBLISHED[size]
    assert speakers.unpack_text(PUBLISHED[size]) == data


@given(st.binary(min_size=1, max_size=300))
def test_base16384_round_trip(data: bytes) -> None:
    assert speakers.unpack_text(speakers.pack_text(data)) == data


@pytest.mark.reference
@given(st.binary(min_size=1, max_size=300))
def test_base16384_equals_the_reference(data: bytes) -> None:
    reference = pytest.importorskip("pybase16384")
    assert speakers.pack_text(data) == reference.encode_to_string(data)


def test_a_speaker_survives_bit_by_bit() -> None:
    code = speakers.encode_speaker(VECTOR)
    assert speakers.decode_speaker(code, HIDDEN).tobytes() == VECTOR.tobytes()
    assert speakers.encode_speaker(speakers.decode_speaker(code, HIDDEN)) == code
    assert speakers.decode_speaker(f" {code}\n", HIDDEN).tobytes() == VECTOR.tobytes()


def test_a_prompt_survives_bit_by_bit() -> None:
    code = speakers.encode_prompt(CODES)
    decoded = speakers.decode_prompt(code, 4, 625)
    assert decoded.dtype == np.int64
    assert (decoded == CODES).all()
    assert speakers.encode_prompt(decoded) == code


def test_the_packed_form_is_what_any_lzma2_reader_unpacks() -> None:
    raw = speakers.unpack_text(speakers.encode_speaker(VECTOR))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
    assert lzma.decompress(raw, lzma.FORMAT_RAW, filters=filters) == VECTOR.tobytes()


def test_random_speakers_come_from_the_statistics_and_the_seed() -> None:
    deviation = np.full(HIDDEN, 2, np.float16)
    mean = np.full(HIDDEN, 10, np.float16)
    statistics = speakers.encode_statistics(deviation, mean)
    first = speakers.random_speaker(statistics, HIDDEN, 1)
    assert first.dtype == np.float16
    assert (first == speakers.random_speaker(statistics, HIDDEN, 1)).all()
    assert (first != speakers.random_speaker(statistics, HIDDEN, 2)).any()
    assert abs(float(first.astype(np.float64).mean()) - 10) < 0.3
    assert abs(float(first.astype(np.float64).std()) - 2) < 0.2


def test_the_embedding_has_length_one() -> None:
    unit = speakers.embedding(VECTOR)
    assert unit.dtype == np.float32
    assert abs(float(np.linalg.norm(unit)) - 1) < 1e-6
    assert not speakers.embedding(np.zeros(4, np.float16)).any()


GOOD = speakers.encode_speaker(VECTOR)
PROMPT = speakers.encode_prompt(CODES)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "abc",
        GOOD[:-1],
        GOOD[:-4],
        GOOD[4:],
        GOOD[1:],
        GOOD + GOOD,
        "人" * 200_000,
        PROMPT,
        "\u3d01",
        "人\u3d06",
    ],
)
def test_a_bad_speaker_code_is_a_typed_error(code: str) -> None:
    with pytest.raises(BadSpeaker):
        speakers.decode_speaker(code, HIDDEN)


@pytest.mark.parametrize("around", ["\ufeff", "\ufeff \n", " \ufeff", "\r\n\ufeff\ufeff\t", "\u3000"])
def test_blanks_and_marks_around_a_code_do_not_count(around: str) -> None:
    for text in (around + GOOD, GOOD + around, around + GOOD + around):
        assert speakers.unpack_text(text) == speakers.unpack_text(GOOD)
    with pytest.raises(BadSpeaker):
        speakers.unpack_text(GOOD[:4] + around + GOOD[4:])


def test_a_speaker_of_another_model_is_refused_by_its_length() -> None:
    with pytest.raises(BadSpeaker, match="768 numbers; this model needs 64"):
        speakers.decode_speaker(GOOD, 64)


def test_a_speaker_that_is_not_finite_is_refused() -> None:
    with pytest.raises(BadSpeaker, match="finite"):
        speakers.decode_speaker(speakers.encode_speaker(np.full(HIDDEN, np.nan, np.float16)), HIDDEN)


@pytest.mark.parametrize("code", ["", "\u4e00\u3d01", GOOD, PROMPT[:-2], PROMPT[4:]])
def test_a_bad_prompt_code_is_a_typed_error(code: str) -> None:
    with pytest.raises(BadSpeaker):
        speakers.decode_prompt(code, 4, 625)


def test_prompt_codes_out_of_range_are_refused() -> None:
    with pytest.raises(BadSpeaker, match="largest is 99"):
        speakers.decode_prompt(PROMPT, 4, 100)
    with pytest.raises(BadSpeaker):
        speakers.decode_prompt(PROMPT, 2, 625)
    with pytest.raises(BadSpeaker):
        speakers.encode_prompt(np.zeros((4, 0), np.int64))


@given(st.text(max_size=60))
def test_any_text_is_a_code_or_a_typed_error(text: str) -> None:
    for decode in (speakers.decode_speaker, speakers.decode_statistics):
        with pytest.raises(BadSpeaker):
            decode(text, HIDDEN)
    with pytest.raises(BadSpeaker):
        speakers.decode_prompt(text, 4, 625)


@given(st.integers(0, len(GOOD) - 1), st.integers(0, (1 << 14) - 1))
def test_a_damaged_code_never_gives_a_vector_of_another_length(place: int, value: int) -> None:
    damaged = GOOD[:place] + chr(0x4E00 + value) + GOOD[place + 1 :]
    with contextlib.suppress(BadSpeaker):
        assert speakers.decode_speaker(damaged, HIDDEN).shape == (HIDDEN,)
