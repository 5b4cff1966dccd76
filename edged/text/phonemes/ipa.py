"""The International Phonetic Alphabet: what is valid, and the nearest sounds of American English.

English voices that take phonemes were trained with one symbol for each sound of American English, diphthongs
and affricates included, and the stress mark right before the vowel (həlˈO). People write IPA in many ways,
and of other languages; here each sound gets the symbols of the nearest one. Pure, linear, any thread.
Neighbours: `spelling` writes these symbols in plain letters, frontends of English voices take them, `markup`
and `lexicon` check what people wrote.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST = 500  # characters of one stretch
VOWELS = frozenset("iɪɛæɑɔʌəuʊɜAIOWYᵊᵻ")
CONSONANTS = frozenset("bdfhjklmnpstvwzðŋɡɹɾʃʒʔʤʧθ")
STRESSES = "ˈˌ"
_REDUCED = frozenset("əᵊᵻ")
_GUTTURAL = "x"  # not of American English; what it becomes depends on what follows

# Written -> the symbols of American English. The longest that fits is taken.
_SOUNDS = dict(
    pair.split("=")
    for pair in """
    i=i ɪ=ɪ e=ɛ ɛ=ɛ æ=æ a=ɑ ɑ=ɑ ɒ=ɑ ɔ=ɔ o=O ʌ=ʌ ə=ə u=u ʊ=ʊ ɐ=ə ᵊ=ᵊ ᵻ=ᵻ ɘ=ə ɵ=ə ɨ=ɪ ɯ=u ʉ=u y=u ʏ=ʊ ɤ=ʌ ɞ=ʌ
    ɶ=æ
    eɪ=A ei=A ej=A aɪ=I ai=I aj=I ɑɪ=I oʊ=O ou=O ow=O əʊ=O aʊ=W au=W aw=W ɑʊ=W ɔɪ=Y ɔi=Y ɔj=Y oɪ=Y oi=Y
    ɜ=ɜɹ ɝ=ɜɹ ɜɹ=ɜɹ ɜr=ɜɹ ɝɹ=ɜɹ ɝr=ɜɹ ɜ˞=ɜɹ ɚ=əɹ ɚɹ=əɹ ɚr=əɹ ø=ɜɹ œ=ɜɹ ˞=ɹ
    A=A I=I O=O Q=O W=W Y=Y T=ɾ
    p=p b=b t=t d=d k=k ɡ=ɡ g=ɡ f=f v=v θ=θ ð=ð s=s z=z ʃ=ʃ ʒ=ʒ h=h m=m n=n ŋ=ŋ l=l ɹ=ɹ r=ɹ w=w j=j ɾ=ɾ ʔ=ʔ
    tʃ=ʧ ʧ=ʧ dʒ=ʤ ʤ=ʤ ʦ=ts ʣ=dz tɕ=ʧ ʨ=ʧ dʑ=ʤ ʥ=ʤ tʂ=ʧ ʈʂ=ʧ dʐ=ʤ ɖʐ=ʤ ɕ=ʃ ʑ=ʒ ʂ=ʃ ʐ=ʒ ç=ʃ ʝ=j
    x=x χ=x ħ=h ɦ=h ɣ=ɡ ɢ=ɡ ɟ=ɡ c=k q=k β=v ɸ=f ʋ=v ʍ=w ɥ=w ɰ=w ɻ=ɹ ʁ=ɹ ʀ=ɹ ɽ=ɹ ɲ=nj ʎ=lj ɫ=l ɭ=l ʟ=l ɬ=l ɱ=m
    ɳ=n ɴ=ŋ ʈ=t ɖ=d ʕ=ʔ
    l\u0329=ᵊl n\u0329=ᵊn m\u0329=ᵊm ɹ\u0329=əɹ r\u0329=əɹ ŋ\u0329=ᵊŋ \u0303=n ˈ=ˈ '=ˈ ˌ=ˌ
    """.split()
)
_SOUNDS = {unicodedata.normalize("NFD", written): symbols for written, symbols in _SOUNDS.items()}
# Length, syllable borders, ties, and finer detail than the voices know.
_SYLLABIC = "\u0329"  # of a consonant: some are in the table, elsewhere it says nothing
_DETAIL = re.compile(
    "[ːˑ.ʰʲʷˠˤⁿˡ\u203f\u0361\u035c\u031a\u032f\u0325\u030a\u032a\u033a\u031f\u0320"
    "\u031d\u031e\u0324\u0330\u0339\u031c\u0306\u0308\u033d]"
)
_SOUND = re.compile("|".join(sorted(map(re.escape, _SOUNDS), key=len, reverse=True)))
_BETWEEN_WORDS = re.compile(r"[\s|‖-]+")
_BRACKETS = (("/", "/"), ("[", "]"))


def normalised(written: str) -> str:
    """The same without brackets around it, one blank between words. Raises `ValueError`, which says why."""
    if len(written) > LONGEST:
        raise ValueError(f"the IPA has more than {LONGEST} characters")
    text = written.strip()
    for opening, closing in _BRACKETS:
        if len(text) > 1 and text.startswith(opening) and text.endswith(closing):
            text = text[1:-1]
    text = " ".join(_BETWEEN_WORDS.split(text)).strip()
    if not any(c in VOWELS or c in CONSONANTS for c in american(text)):
        raise ValueError("there is no sound")
    return text


def american(written: str) -> str:
    """In the symbols of American English, a blank between words.

    A word without a stress mark gets one on its first full vowel, as a dictionary would have it. Raises
    `ValueError` for a character that is no IPA.
    """
    words = _BETWEEN_WORDS.split(unicodedata.normalize("NFD", written))
    return " ".join(filter(None, map(_word, words)))


def _word(written: str) -> str:
    written = _DETAIL.sub("", written)
    symbols: list[str] = []
    at = 0
    while at < len(written):
        match = _SOUND.match(written, at)
        if match is None:
            if written[at] != _SYLLABIC:
                raise ValueError(f"{written[at]!r} is no symbol of IPA that stands for a sound")
            at += 1
            continue
        symbols += _SOUNDS[match.group()]
        at = match.end()
    return _stressed([_nearest(symbols, place) for place in range(len(symbols))])


def _nearest(symbols: list[str], place: int) -> str:
    if symbols[place] != _GUTTURAL:
        return symbols[place]
    following = next((symbol for symbol in symbols[place + 1 :] if symbol not in STRESSES), "")
    return "h" if following in VOWELS else "k"


def _stressed(symbols: list[str]) -> str:
    """With each stress mark right before a vowel, and at least one where there is a full vowel."""
    made: list[str] = []
    stress = ""
    for symbol in symbols:
        if symbol in STRESSES:
            stress = symbol
            continue
        if symbol in VOWELS and stress:
            made.append(stress)
            stress = ""
        made.append(symbol)
    if not any(symbol in STRESSES for symbol in made):
        full = (place for place, symbol in enumerate(made) if symbol in VOWELS - _REDUCED)
        first = next(full, None)
        if first is not None:
            made.insert(first, STRESSES[0])
    return "".join(made)
