"""Mandarin syllables in pinyin: what is one, and one common form for the ways to write them.

The common form has tone numbers, 5 for the neutral tone, `v` for ü and a blank between syllables: hang2 lv4
de5. Pure tables, any thread. Neighbours: `homophones` and `sounds` look syllables up, `markup` and `lexicon`
check what people wrote.
"""

from __future__ import annotations

import re
import unicodedata

NEUTRAL = "5"
LONGEST = 2_000  # characters of one word's pinyin

# An initial with the finals that follow it in the spelling; the first line has those without an initial.
_TABLE = """
- a ai an ang ao e ei en eng er o ou ê m n ng hm hng
b a ai an ang ao ei en eng i ian iang iao ie in ing o u
p a ai an ang ao ei en eng i ian iao ie in ing o ou u
m a ai an ang ao e ei en eng i ian iao ie in ing iu o ou u
f a an ang ei en eng iao o ou u
d a ai an ang ao e ei en eng i ia ian iao ie in ing iu ong ou u uan ui un uo
t a ai an ang ao e ei eng i ian iao ie ing ong ou u uan ui un uo
n a ai an ang ao e ei en eng i ia ian iang iao ie in ing iu ong ou u uan un uo v ve
l a ai an ang ao e ei eng i ia ian iang iao ie in ing iu o ong ou u uan un uo v ve
g a ai an ang ao e ei en eng ong ou u ua uai uan uang ui un uo
k a ai an ang ao e ei en eng ong ou u ua uai uan uang ui un uo
h a ai an ang ao e ei en eng ong ou u ua uai uan uang ui un uo
j i ia ian iang iao ie in ing iong iu u uan ue un
q i ia ian iang iao ie in ing iong iu u uan ue un
x i ia ian iang iao ie in ing iong iu u uan ue un
zh a ai an ang ao e ei en eng i ong ou u ua uai uan uang ui un uo
ch a ai an ang ao e en eng i ong ou u ua uai uan uang ui un uo
sh a ai an ang ao e ei en eng i ou u ua uai uan uang ui un uo
r an ang ao e en eng i ong ou u ua uan ui un uo
z a ai an ang ao e ei en eng i ong ou u uan ui un uo
c a ai an ang ao e ei en eng i ong ou u uan ui un uo
s a ai an ang ao e en eng i ong ou u uan ui un uo
y a an ang ao e i in ing o ong ou u uan ue un
w a ai an ang ei en eng o ong u
"""
_WITHOUT_INITIAL = "-"
_TONES = {"\u0304": "1", "\u0301": "2", "\u030c": "3", "\u0306": "3", "\u0300": "4"}  # a breve is a caron
_DIAERESIS = "\u0308"
_CIRCUMFLEX = "\u0302"
_PART = re.compile(r"[^\s\d'’·-]+[0-9]*|[0-9]+")
_SEPARATORS = re.compile(r"[\s'’·-]*")


def _initials() -> dict[str, str]:
    """Every syllable without its tone, and how many of its letters are the initial."""
    found: dict[str, str] = {}
    for line in _TABLE.split("\n"):
        if line:
            initial, *finals = line.split()
            initial = "" if initial == _WITHOUT_INITIAL else initial
            found.update((initial + final, initial) for final in finals)
    return found


INITIALS = _initials()
SYLLABLES = frozenset(INITIALS)


def normalised(written: str) -> str:
    """The common form: a syllable a word, with tone numbers.

    written: syllables with tone marks (háng yè) or with tone numbers (hang2 ye4, hang2ye4), parted by
    blanks, apostrophes or hyphens. Of a word with tone marks, a syllable without one has the neutral tone.
    Raises `ValueError`, which says what is wrong.
    """
    if len(written) > LONGEST:
        raise ValueError(f"the pinyin has more than {LONGEST} characters")
    if _SEPARATORS.fullmatch(written):
        raise ValueError("there is no syllable")
    read = [_syllable(part) for part in _PART.findall(unicodedata.normalize("NFKC", written).lower())]
    numbered = any(number for _, _, number in read)
    marked = any(mark for _, mark, _ in read)
    if numbered and marked:
        raise ValueError("tone marks and tone numbers are mixed: write one or the other")
    made: list[str] = []
    for base, mark, number in read:
        if not (number or marked):
            raise ValueError(
                f"{base!r} has no tone: write {base}1 to {base}4, or {base}5 for the neutral tone"
            )
        made.append(base + (number or mark or NEUTRAL))
    return " ".join(made)


def parted(syllable: str) -> tuple[str, str, str]:
    """Initial, final and tone of a syllable in the common form: ('h', 'ang', '2')."""
    base, tone = syllable[:-1], syllable[-1]
    initial = INITIALS[base]
    return initial, base[len(initial) :], tone


def _syllable(part: str) -> tuple[str, str, str]:
    """A written syllable: its letters in the common form, the tone of its mark and of its number."""
    letters: list[str] = []
    mark = ""
    number = part.lstrip("".join(c for c in part if not c.isdigit()))
    for character in unicodedata.normalize("NFD", part.removesuffix(number)):
        if character in _TONES:
            if mark:
                raise ValueError(f"{part!r} has two tone marks: put a blank between syllables")
            mark = _TONES[character]
        elif character == _DIAERESIS and letters and letters[-1] == "u":
            letters[-1] = "v"
        elif character == _CIRCUMFLEX and letters and letters[-1] == "e":
            letters[-1] = "ê"
        else:
            letters.append(character)
    base = _common("".join(letters))
    if base not in SYLLABLES:
        hint = ": put a blank between syllables" if _is_several(base) else ""
        raise ValueError(f"{part!r} is no syllable of pinyin{hint}")
    if number and number not in ("0", "1", "2", "3", "4", "5"):
        raise ValueError(f"{part!r} has no such tone: tones are 1 to 4, and 5 for the neutral one")
    return base, mark, NEUTRAL if number == "0" else number


def _common(base: str) -> str:
    """Ways to write the same syllable."""
    base = base.replace("u:", "v")
    if base == "r":  # 花儿 as dictionaries write it
        return "er"
    if base in ("lue", "nue"):
        return base.replace("ue", "ve")
    if base[:1] in ("j", "q", "x", "y") and base[1:2] == "v":
        return base.replace("v", "u", 1)
    return base


def _is_several(letters: str) -> bool:
    """Whether the letters are syllables without a blank between them."""
    if len(letters) > 60:
        return False
    reached = {0}
    for start in range(len(letters)):
        if start in reached:
            reached |= {end for end in range(start + 1, start + 7) if letters[start:end] in SYLLABLES}
    return len(letters) in reached
