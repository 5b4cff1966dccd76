"""Sounds of American English in plain letters, for voices that take no phonemes. Pure, linear, any thread.

Each sound gets the letters that are read so most surely: həlˈO is huloh. Stress cannot be written.
Neighbours: `ipa` and `mandarin` give the sounds, `respell` is what others call.
"""

from __future__ import annotations

from itertools import pairwise

from edged.text.phonemes.ipa import STRESSES, VOWELS

# Symbol -> letters before a consonant, and elsewhere.
_VOWELS = {
    "i": ("ee", "ee"),
    "ɪ": ("i", "ih"),
    "ᵻ": ("i", "ih"),
    "ɛ": ("e", "eh"),
    "æ": ("a", "ah"),
    "ɑ": ("o", "ah"),
    "ɔ": ("aw", "aw"),
    "ʌ": ("u", "uh"),
    "ə": ("u", "uh"),
    "ᵊ": ("u", "uh"),
    "u": ("oo", "oo"),
    "ʊ": ("oo", "oo"),
    "ɜ": ("u", "uh"),
    "A": ("ay", "ay"),
    "I": ("igh", "igh"),
    "O": ("oa", "oh"),
    "W": ("ou", "ow"),
    "Y": ("oy", "oy"),
}
# Before r.
_VOWELS_BEFORE_R = {"ɛ": "ai", "ɑ": "a", "ɔ": "o", "O": "o", "ə": "e", "æ": "a", "ɪ": "ee", "W": "ow"}
_CONSONANTS = {
    "ɡ": "g",
    "ʃ": "sh",
    "ʒ": "zh",
    "θ": "th",
    "ð": "th",
    "ʧ": "ch",
    "ʤ": "j",
    "ŋ": "ng",
    "j": "y",
    "ɹ": "r",
    "ɾ": "t",
    "ʔ": "t",
}
_SOFTENS_G = frozenset("iɪɛᵻA")  # written with i, e or y mostly: gh keeps the g hard
_START_OF_WORD = {"I": "eye"}
_JOINS_H = frozenset("stcpgzkw")  # letters that an h would change


def respelled(american: str) -> str:
    """In letters a to z, a word for each word; a hyphen parts letters that would be read as one sound."""
    return " ".join(filter(None, map(_word, american.split(" "))))


def _word(symbols: str) -> str:
    sounds = [symbol for symbol in symbols if symbol not in STRESSES]
    made = ""
    for place, (sound, following) in enumerate(pairwise([*sounds, ""])):
        letters = _letters(sound, following)
        if place == 0 and following:
            letters = _START_OF_WORD.get(sound, letters)
        elif sound == "s" and not following and sounds[place - 1] in VOWELS:
            letters = "ss"  # one s would be a z
        elif sound == "ŋ" and following == "k":
            letters = "n"
        made += "-" + letters if sound == "h" and made[-1:] in _JOINS_H else letters
    return made


def _letters(sound: str, following: str) -> str:
    if sound in VOWELS:
        if following == "ɹ" and sound in _VOWELS_BEFORE_R:
            return _VOWELS_BEFORE_R[sound]
        if sound == "ɑ" and following == "ŋ":
            return "ah"  # ong has another vowel
        before_consonant = bool(following) and following not in VOWELS
        return _VOWELS[sound][0 if before_consonant else 1]
    if sound == "ɡ" and following and following in _SOFTENS_G:
        return "gh"
    return _CONSONANTS.get(sound, sound)
