"""Signs of mathematics and of writing, emoji, hashtags, markup, and what is left: no digit stays a digit."""

from __future__ import annotations

import re
import unicodedata

from edged.text import shapes
from edged.text.english import units, words
from edged.text.english.letters import letters
from edged.text.english.rule import Reading, Rule, Say, rule

_WORDS = {
    "+": "plus", "−": "minus", "±": "plus or minus", "∓": "minus or plus", "×": "times",
    "÷": "divided by", "=": "equals", "≠": "is not equal to", "≈": "is approximately",
    "≅": "is approximately", "≡": "is identical to", "<": "less than", ">": "greater than",
    "≤": "less than or equal to", "≥": "greater than or equal to", "≪": "much less than",
    "≫": "much greater than", "√": "square root of", "∞": "infinity", "∝": "is proportional to",
    "∑": "sum of", "∏": "product of", "∫": "integral of", "∂": "partial", "∇": "nabla", "∈": "in",
    "∆": "delta", "→": "to", "⇒": "implies", "←": "from", "↔": "to and from", "↑": "up", "↓": "down",
    "⌀": "diameter", "Ø": "diameter", "%": "percent", "‰": "per mille", "&": "and", "@": "at",
    "#": "hash", "^": "caret", "~": "about", "|": "bar", "\\": "backslash", "_": "underscore",
    "/": "slash", "*": "star", "§": "section", "¶": "paragraph", "©": "copyright", "®": "registered",
    "™": "trademark", "℠": "service mark", "°": "degrees", "µ": "micro", "Ω": "ohms",
    "℃": "degrees Celsius", "℉": "degrees Fahrenheit", "№": "number", "$": "dollars", "£": "pounds",
    "€": "euros", "¥": "yen", "₹": "rupees", "₩": "won", "₽": "rubles", "₺": "lira", "₿": "bitcoin",
    "¢": "cents", "·": "dot", "†": "dagger", "‡": "double dagger", "¬": "not", "⁻": "minus", "⁺": "plus",
    "ª": "", "`": "",
}  # fmt: skip
_LONGER = {
    "<=": "less than or equal to", ">=": "greater than or equal to", "!=": "is not equal to",
    "==": "equals", "<>": "is not equal to", "->": "to", "-->": "to", "=>": "to", "<-": "from",
    "<->": "to and from", "+/-": "plus or minus", "~=": "is approximately", "&&": "and", "||": "or",
    "**": "to the power of",
}  # fmt: skip
_ELEMENTS = (
    "a|abbr|article|audio|b|blockquote|body|br|button|center|code|dd|div|dl|dt|em|emphasis|font|footer|form|h[1-6]|head|header|hr|"
    "html|i|img|input|ins|kbd|label|lang|li|link|main|mark|meta|nav|ol|option|p|phoneme|pre|prosody|q|s|say-as|script|section|"
    "small|span|speak|strike|strong|style|sub|sup|table|tbody|td|th|thead|title|tr|tt|u|ul|var|video|voice|break"
)
_ENTITIES = {
    "amp": "and", "lt": "less than", "gt": "greater than", "deg": "degrees", "plusmn": "plus or minus",
    "times": "times", "micro": "micro", "copy": "copyright", "reg": "registered",
}  # fmt: skip
_SUPER = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWER_OF_UNIT = re.compile(r"(?:\d ?(?:[kcdmµ]?m|ft|in|yd)|(?<![\w.])10)$")
_HAN_NUMERAL = re.compile("[\u3000-\u3247\u3280-\u32b0\u32c0-\u33ff]")  # words of Chinese, not figures
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-zà-öø-ÿ]+|\d+|[^\W\d_]+")


def _emoji(match: re.Match[str], say: Say) -> Reading:
    key = match[0][0]
    if key.isascii():  # a key with a figure is a figure
        return Reading("emoji", words.ONES[int(key)] if key.isdigit() else {"#": "hash", "*": "star"}[key])
    name = shapes.emoji_name(match[0]) if say.options.emoji == "name" else ""
    return Reading("emoji", " ".join(re.findall(r"[a-z]+", name)))


def _ligature(match: re.Match[str], say: Say) -> Reading:
    return Reading("width", unicodedata.normalize("NFKC", match[0]))


def _per(match: re.Match[str], say: Say) -> Reading | None:
    """strokes/h."""
    found = units.parse(match.string, match.start())
    return Reading("unit", found.one, found.end) if found else None


def _hashtag(match: re.Match[str], say: Say) -> Reading:
    parts = _CAMEL.findall(match[1])
    said = [
        say.number(part)
        if part.isascii() and part.isdigit()
        else letters(part)
        if part.isupper()
        else part.lower()
        for part in parts
    ]
    return Reading("hashtag", " ".join(["hashtag", *said]))


def _handle(match: re.Match[str], say: Say) -> Reading:
    parts = re.findall(r"[A-Za-z]+|\d+|_", match[1])
    said = ["underscore" if p == "_" else words.digits(p) if p.isdigit() else letters(p) for p in parts]
    return Reading("hashtag", f"at {' '.join(said)}")


def _silent(match: re.Match[str], say: Say) -> Reading:
    return Reading("markup", "")


def _entity(match: re.Match[str], say: Say) -> Reading:
    """A figure that is written as a reference is a figure."""
    if match[1].startswith("#"):
        character = shapes.referenced(match[0])
        return Reading("markup", words.digits(character) or character)
    return Reading("markup", _ENTITIES.get(match[1], ""))


def _longer(match: re.Match[str], say: Say) -> Reading:
    return Reading("math", _LONGER[match[0]])


def _superscript(match: re.Match[str], say: Say) -> Reading:
    figures = match[0].translate(_SUPER)
    if figures in ("2", "3") and match.start() and match.string[match.start() - 1] not in " \n":
        return Reading("math", "squared" if figures == "2" else "cubed")
    sign = "minus " if figures[0] == "⁻" else ""
    return Reading("math", f"to the power of {sign}{say.number(figures.lstrip('⁻⁺').lstrip('0') or '0')}")


def _caret(match: re.Match[str], say: Say) -> Reading | None:
    power = match[1]
    if _POWER_OF_UNIT.search(match.string, max(0, match.start() - 6), match.start()):
        return None  # m^2, 10^5: read with the number before it
    if power in ("2", "3"):
        return Reading("math", "squared" if power == "2" else "cubed")
    sign = "minus " if power[0] in "-−" else ""
    return Reading("math", f"to the power of {sign}{say.number(power.lstrip('-−').lstrip('0') or '0')}")


def _star(match: re.Match[str], say: Say) -> Reading:
    return Reading("math", "times")


def _sign(match: re.Match[str], say: Say) -> Reading:
    said = _WORDS[match[0]]
    if match[0] in "≈≅" and _opens(match):
        said = said.removeprefix("is ")
    return Reading("math" if said else "markup", said)


def _opens(match: re.Match[str]) -> bool:
    """Whether nothing stands before it that could be its subject."""
    before = match.string[max(0, match.start() - 2) : match.start()].rstrip(" ")
    return not before or before[-1] in "(:,;.\n"


def _greek(match: re.Match[str], say: Say) -> Reading:
    return Reading("math", unicodedata.name(match[0]).rpartition(" ")[2].lower())


def _leftover(match: re.Match[str], say: Say) -> Reading:
    return Reading("identifier", words.digits(match[0]) if len(match[0]) > 4 else say.number(match[0]))


def _other_numeral(match: re.Match[str], say: Say) -> Reading | None:
    """Circled, Roman and other numerals that are one character each."""
    character = match[0]
    value = unicodedata.numeric(character, None)
    if value is None or unicodedata.category(character) not in ("No", "Nl") or _HAN_NUMERAL.match(character):
        return _width(character)
    if value == int(value):
        return Reading(
            "roman" if "ROMAN" in unicodedata.name(character, "") else "cardinal", say.cardinal(int(value))
        )
    sign = "minus " if value < 0 else ""
    return Reading("decimal", sign + say.number(f"{abs(value):.4f}".rstrip("0")))


def _width(character: str) -> Reading | None:
    """Letters of wide and mathematical type that only look different."""
    if "\ufb00" <= character <= "\ufb06" or "\u2460" <= character <= "\u24ff":
        plain = unicodedata.normalize("NFKC", character)
        return Reading("width", plain) if plain.isalpha() else None
    return None


MARKUP: list[Rule] = [
    rule(
        rf"</?(?:{_ELEMENTS})(?:\s[^<>]{{0,200}})?/?>|<!--[^<>]{{0,500}}-->|<!\[CDATA\[|\]\]>|<[!?][A-Za-z][^<>]{{0,200}}>",
        _silent,
        digits=False,
    ),
    rule(r"&([A-Za-z]{2,8}|#\d{1,7}|#x[0-9A-Fa-f]{1,6});", _entity, digits=False),
    rule(
        r"(?<!\w)(?:\*\*\*?|__|~~)(?=\w)|(?<=[\w.!?,;:)])(?:\*\*\*?|__|~~)(?!\w)|`{1,3}",
        _silent,
        digits=False,
    ),
    rule(
        r"(?<![\d*] )(?<![\d*])\*{3,60}(?![\d*])(?! \d)|(?<=[^\d*] )\*{3,60}(?= |$)|(?<= )\*{3,60}(?=\n|$)",
        _silent,
        digits=False,
    ),
    rule(r"(?m)^#{1,6} (?=\S)|^ {0,8}[*•‣◦▪·+] (?=\S)|^[-=_*]{3,60}$|^> (?=\S)", _silent, digits=False),
    rule(
        r"(?<!\w)[*_](?=\w[^*_\n]{0,80}[*_](?!\w))|(?<=\w)[*_](?!\w)(?=[ .,;:!?)\n]|$)(?<=[a-z][*_])",
        _silent,
        digits=False,
    ),
    rule(r"[•‣◦▪●○■□▶►◆◇]", _silent, digits=False),
]
EMOJI: list[Rule] = [
    rule(shapes.EMOJI, _emoji, digits=False),
    rule("[\u200d\u20e3\ufe0e\ufe0f]+", _silent, digits=False),  # parts of an emoji that is not there
]
HASHTAGS: list[Rule] = [
    rule(r"(?<![\w&#/])#([^\W\d_][\w]{0,60})", _hashtag, digits=False),
    rule(r"(?<![\w&#/])#(\d{1,4}[A-Za-z]\w{0,60})", _hashtag),
    rule(r"(?<![\w.@+-])@([A-Za-z_][A-Za-z0-9_]{1,30})(?![\w@])", _handle, digits=False),
]
SIGNS_FIRST: list[Rule] = [
    rule(r"<->|-->|(?<![<>=!])(?:<=|>=|!=|==|=>|->|<-(?! ?\d)|<>)|~=|&&|\|\||\+/-", _longer, digits=False),
    rule(r"(?<=[\w)\ufdd0])\^\(?([-−]?\d{1,4})\)?", _caret),
    rule(r"(?<=[\d\ufdd0]) ?\*{1,2} ?(?=[\d\ufdd0(A-Za-z])", _star),
]
FIGURES: list[Rule] = [
    rule(r"[A-Za-z]{0,20}[\ufb00-\ufb06][A-Za-z\ufb00-\ufb06]{0,20}", _ligature, digits=False),
    rule(r"(?<=[a-z]{3})/(?=(?:h|hr|min|s|d|kg|t|[mµ]?[lLm]|m[²³23])(?![\w/]))", _per, digits=False),
    rule(r"[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,9}", _superscript, digits=False),
    rule(r"\d{1,18}", _leftover),
    rule(r"[^\x00-\x7f\ufdd0\u0080-\u00b1\u00c0-\u024f]", _other_numeral, digits=False),
]
LAST: list[Rule] = [
    rule("[" + re.escape("".join(_WORDS)) + "]", _sign, digits=False),
    rule(
        r"(?<![\u0370-\u03ff])[\u0391-\u03a1\u03a3-\u03a9\u03b1-\u03c9](?![\u0370-\u03ff])",
        _greek,
        digits=False,
    ),
]
