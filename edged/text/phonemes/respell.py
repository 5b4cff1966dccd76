"""Phonemes for a voice that does not take their alphabet: as words that it reads so. Any thread.

Neighbours: `reading` puts markup's and the lexicon's phonemes into texts with it; `homophones`, `ipa` and
`mandarin` know the sounds.
"""

from __future__ import annotations

from edged.text.document import Alphabet, Language, Phonemes
from edged.text.phonemes import homophones, ipa, mandarin, pinyin, spelling


def checked(alphabet: Alphabet, written: str) -> Phonemes:
    """Phonemes as people wrote them, in the alphabet's common form.

    Raises `ValueError`, which says what is wrong in plain words and names at most the syllable or character.
    """
    return Phonemes(alphabet, pinyin.normalised(written) if alphabet == "pinyin" else ipa.normalised(written))


def respell(phonemes: Phonemes, language: Language) -> str:
    """Words that sound like these (valid) phonemes.

    Pinyin is written in homophones for a Chinese voice, and in English letters, without its tones, for an
    English one. IPA is written in English letters for both: a Chinese voice reads them, too.
    """
    if phonemes.alphabet == "pinyin" and language == "zh":
        return homophones.written(phonemes.symbols)
    return spelling.respelled(american(phonemes))


def american(phonemes: Phonemes) -> str:
    """Valid phonemes in the symbols of American English, for voices that take these."""
    if phonemes.alphabet == "pinyin":
        return mandarin.american(phonemes.symbols)
    return ipa.american(phonemes.symbols)


def missing(phonemes: Phonemes, language: Language) -> tuple[str, ...]:
    """The syllables that `respell` can only write with another tone."""
    if phonemes.alphabet == "pinyin" and language == "zh":
        return homophones.missing(phonemes.symbols)
    return ()
