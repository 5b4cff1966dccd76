"""The nearest American English sounds of Mandarin syllables, as a traveller would say them. Pure tables.

Tones are lost: a syllable with a tone is stressed, one without is not. Any thread. Neighbours: `pinyin`
gives the syllables, `respell` writes the sounds in letters, a frontend may take them as they are.
"""

from __future__ import annotations

from edged.text.phonemes.ipa import STRESSES, VOWELS
from edged.text.phonemes.pinyin import NEUTRAL, SYLLABLES, parted

_INITIALS = dict(
    pair.split("=")
    for pair in """b=b p=p m=m f=f d=d t=t n=n l=l g=ɡ k=k h=h j=ʤ q=ʧ x=ʃ zh=ʤ ch=ʧ sh=ʃ r=ɹ z=dz c=ts s=s
    y=j w=w""".split()
)
_FINALS = dict(
    pair.split("=")
    for pair in """a=ɑ ai=I an=ɑn ang=ɑŋ ao=W e=ʌ ei=A en=ʌn eng=ʌŋ er=ɑɹ o=ɔ ou=O ong=ʊŋ i=i ia=jɑ ian=jɛn
    iang=jɑŋ iao=jW ie=jɛ in=in ing=ɪŋ iong=jʊŋ iu=jO u=u ua=wɑ uai=wI uan=wɑn uang=wɑŋ ue=wɛ ui=wA un=wʌn
    uo=wɔ v=ju ve=jwɛ ê=ɛ m=ʌm n=ʌn ng=ʌŋ hm=hʌm hng=hʌŋ""".split()
)
_PALATAL = ("j", "q", "x", "y")  # the u after these is ü
_FINALS_AFTER_PALATAL = {"uan": "wɛn", "un": "un"}
_BUZZING = {"zh": "ɜɹ", "ch": "ɜɹ", "sh": "ɜɹ", "r": "ɜɹ", "z": "ʌ", "c": "ʌ", "s": "ʌ"}  # an i after these


def _sound(base: str) -> str:
    initial, final, _ = parted(base + NEUTRAL)
    if final == "i" and initial in _BUZZING:
        sound = _BUZZING[initial]
    elif initial in _PALATAL and final in _FINALS_AFTER_PALATAL:
        sound = _FINALS_AFTER_PALATAL[final]
    elif initial == "y" and final in ("an", "e"):
        sound = {"an": "ɛn", "e": "ɛ"}[final]
    else:
        sound = _FINALS[final]
    return _INITIALS.get(initial, "") + sound


_SOUNDS = {base: _sound(base) for base in SYLLABLES}


def american(symbols: str) -> str:
    """A word for each syllable. symbols: pinyin in its common form, valid."""
    return " ".join(_stressed(syllable) for syllable in symbols.split())


def _stressed(syllable: str) -> str:
    sound = _SOUNDS[syllable[:-1]]
    if syllable.endswith(NEUTRAL):
        return sound
    vowel = next(place for place, symbol in enumerate(sound) if symbol in VOWELS)
    return sound[:vowel] + STRESSES[0] + sound[vowel:]
