"""Speaker codes: the strings in which ChatTTS speakers are passed around, decoded and encoded bit by bit.

Leaf module, no thread: the loading thread decodes, the compiler and `edged voice` encode. Three kinds,
all in base16384 (14 bits a character, so that a speaker fits into a chat message):
    speaker     raw LZMA2 of fp16 [hidden]: the vector that replaces the embedding of [spk_emb]
    prompt      two uint16 (codebooks, steps), then raw LZMA2 of uint16 [codebooks, steps]: a recording
    statistics  fp16 [2 x hidden], not packed: deviation and mean, from which random speakers are drawn
"""

from __future__ import annotations

import lzma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged.errors import BadSpeaker

MAX_CODE_CHARS = 100_000  # a minute of speech as a prompt takes some 15,000
# What may stand around a code, in any order: blanks, and the mark that editors put before a text.
_AROUND = "\ufeff" + "".join(filter(str.isspace, map(chr, range(0x3001))))
_FIRST = 0x4E00  # the first of the 2**14 characters
_TAIL = 0x3D00  # plus n: the last group holds n bytes instead of 7
_MASK = (1 << 14) - 1
# Encoding must use this preset, or the strings differ from those that others make. Decoding needs only a
# dictionary as long as the data: the preset's would take 64 MiB.
_ENCODE = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
_DECODE = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
_MAX_PLAIN = 1 << 20  # bytes that a code may unpack to

Vector = NDArray[np.float16]
Codes = NDArray[np.int64]


def pack_text(data: bytes) -> str:
    """base16384: 7 bytes become 4 characters; a shorter last group is padded with zero bits and marked."""
    characters = []
    for at in range(0, len(data), 7):
        group = data[at : at + 7]
        count = -(-len(group) * 8 // 14)
        bits = int.from_bytes(group, "big") << (count * 14 - len(group) * 8)
        characters += [chr(_FIRST + (bits >> shift & _MASK)) for shift in range(14 * (count - 1), -1, -14)]
    if len(data) % 7:
        characters.append(chr(_TAIL + len(data) % 7))
    return "".join(characters)


def unpack_text(text: str) -> bytes:
    """The bytes of a base16384 string. Raises `BadSpeaker`."""
    text = text.strip(_AROUND)
    if not text or len(text) > MAX_CODE_CHARS:
        raise BadSpeaker(f"a speaker code of {len(text)} characters")
    tail = ord(text[-1]) - _TAIL
    whole = text
    last = 0
    if 0 < tail < 7:
        last, whole = tail, text[:-1]
    values = [ord(c) - _FIRST for c in whole]
    for place, value in enumerate(values):
        if not 0 <= value <= _MASK:
            raise BadSpeaker(f"character {place + 1} ({whole[place]!r}) cannot be part of a speaker code")
    needed = -(-last * 8 // 14)
    if len(values) % 4 != needed % 4 or len(values) < needed:
        raise BadSpeaker("the speaker code is cut off", "copy the whole string, to its last character")
    data = bytearray()
    for at in range(0, len(values), 4):
        group = values[at : at + 4]
        bits = 0
        for value in group:
            bits = bits << 14 | value
        data += bits.to_bytes(7, "big") if len(group) == 4 else _short(bits, len(group), last)
    if last and needed == 4:  # the last group has four characters and fewer than seven bytes
        del data[last - 7 :]
    return bytes(data)


def _short(bits: int, count: int, size: int) -> bytes:
    return (bits >> (count * 14 - size * 8)).to_bytes(size, "big")


def encode_speaker(vector: NDArray[Any]) -> str:
    """The code of a speaker vector, rounded to fp16."""
    return pack_text(lzma.compress(vector.astype("<f2").tobytes(), lzma.FORMAT_RAW, filters=_ENCODE))


def decode_speaker(code: str, hidden: int) -> Vector:
    """The fp16 vector [hidden] of a speaker code. Raises `BadSpeaker`."""
    return _vector(_unpack(unpack_text(code)), hidden, "the speaker")


def encode_prompt(codes: NDArray[Any]) -> str:
    """The code of a recording's audio codes [codebooks, steps]."""
    if codes.ndim != 2 or codes.size == 0 or codes.min() < 0 or codes.max() > 0xFFFF:
        raise BadSpeaker(f"audio codes of shape {list(codes.shape)} are no prompt")
    head = np.array(codes.shape, "<u2").tobytes()
    body = np.ascontiguousarray(codes).astype("<u2").tobytes()
    return pack_text(head + lzma.compress(body, lzma.FORMAT_RAW, filters=_ENCODE))


def decode_prompt(code: str, codebooks: int, tokens: int) -> Codes:
    """Audio codes [codebooks, steps], each below `tokens`. Raises `BadSpeaker`."""
    data = unpack_text(code)
    if len(data) < 4:
        raise BadSpeaker("the prompt code is cut off", "copy the whole string, to its last character")
    rows, steps = (int(n) for n in np.frombuffer(data, "<u2", 2))
    plain = _unpack(data[4:])
    if rows != codebooks or steps < 1 or len(plain) != rows * steps * 2:
        raise BadSpeaker(
            f"the prompt code holds {len(plain)} bytes as {rows} x {steps}, not {codebooks} codebooks",
            "is it a speaker code? Those are given with --speaker",
        )
    codes = np.frombuffer(plain, "<u2").reshape(rows, steps).astype(np.int64)
    if int(codes.max()) >= tokens:
        raise BadSpeaker(f"the prompt code contains the code {int(codes.max())}; the largest is {tokens - 1}")
    return codes


def decode_statistics(code: str, hidden: int) -> tuple[Vector, Vector]:
    """(deviation, mean), each [hidden]. Raises `BadSpeaker`."""
    both = _vector(unpack_text(code), 2 * hidden, "the statistics")
    return both[:hidden], both[hidden:]


def encode_statistics(deviation: NDArray[Any], mean: NDArray[Any]) -> str:
    return pack_text(np.concatenate([deviation, mean]).astype("<f2").tobytes())


def random_speaker(statistics: str, hidden: int, seed: int) -> Vector:
    """A speaker drawn from the statistics; the same seed gives the same one. All of it in fp16.

    Raises `BadSpeaker` for statistics whose speakers do not fit into fp16.
    """
    deviation, mean = decode_statistics(statistics, hidden)
    noise = np.random.Generator(np.random.PCG64(seed)).standard_normal(hidden).astype(np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        drawn: Vector = noise * deviation + mean
    if not np.isfinite(drawn).all():
        raise BadSpeaker("the statistics give speakers that are not finite", "check the file of --spk-stat")
    return drawn


def embedding(vector: NDArray[Any]) -> NDArray[np.float32]:
    """The vector at length 1, as the network takes it."""
    wide = vector.astype(np.float32)
    unit: NDArray[np.float32] = wide / np.float32(max(float(np.linalg.norm(wide)), 1e-12))
    return unit


def _vector(data: bytes, size: int, what: str) -> Vector:
    if len(data) != size * 2:
        raise BadSpeaker(
            f"{what} holds {len(data) / 2:g} numbers; this model needs {size}",
            "the code was made for another model, or is of another kind (speaker, prompt, statistics)",
        )
    vector: Vector = np.frombuffer(data, "<f2").astype(np.float16)
    if not np.isfinite(vector).all():
        raise BadSpeaker(f"{what} holds values that are not finite")
    return vector


def _unpack(data: bytes) -> bytes:
    reader = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_DECODE)
    try:
        plain = reader.decompress(data, _MAX_PLAIN)
    except lzma.LZMAError as error:
        raise BadSpeaker("the speaker code is damaged: it does not unpack") from error
    if not reader.eof or reader.unused_data:
        raise BadSpeaker("the speaker code is cut off, or has something after its end")
    return plain
