"""URLs, e-mail and network addresses, versions: how they are said in English."""

from __future__ import annotations

import re

from edged.text import shapes
from edged.text.english import words
from edged.text.english.letters import letters
from edged.text.english.rule import Reading, Rule, Say, rule

SIGNS = {
    ".": "dot", "/": "slash", ":": "colon", "-": "dash", "_": "underscore", "@": "at",
    "?": "question mark", "=": "equals", "&": "and", "#": "hash", "%": "percent", "~": "tilde",
    "+": "plus", ",": "comma", ";": "semicolon", "!": "exclamation mark", "$": "dollar",
    "'": "apostrophe", "(": "open parenthesis", ")": "close parenthesis", "*": "star",
}  # fmt: skip
_PART = re.compile(r"[A-Za-z]+|\d+|.", re.S)
_FILE_PART = re.compile(r"[A-Za-z]+|\d+(?:\.\d+)*|.", re.S)
_ENDINGS = (
    "pdf|txt|csv|xlsx?|docx?|pptx?|zip|gz|tar|7z|log|json|xml|ya?ml|ini|cfg|conf|bin|hex|elf|exe|dll|so|py|sh|bat|dwg|dxf|step|stp"
    "|stl|png|jpe?g|gif|bmp|svg|mp[34]|wav|html?|md|db|sql|bak|iso|img|nc|gcode"
)


def spoken(address: str) -> str:
    """Every character of an address in words: letters as words or spelled, digits one by one."""
    read = []
    for part in _PART.findall(address):
        if part.isascii() and part.isalpha():
            read.append(letters(part))
        else:
            read.append(SIGNS.get(part) or words.digits(part))
    return " ".join(filter(None, read))


def _url(match: re.Match[str], say: Say) -> Reading:
    return Reading("url", spoken(match[0]))


def _email(match: re.Match[str], say: Say) -> Reading:
    return Reading("email", spoken(match[0]))


def _file(match: re.Match[str], say: Say) -> Reading:
    """report_v2.1.pdf: words, and figures as in a version."""
    read = []
    for part in _FILE_PART.findall(match[0]):
        if part[0].isdigit():
            read.append(
                numbered(part, say)
                if "." in part
                else words.digits(part)
                if len(part) > 4
                else say.number(part)
            )
        else:
            read.append(letters(part) if part.isalpha() else SIGNS[part])
    return Reading("identifier", " ".join(read))


def _ipv4(match: re.Match[str], say: Say) -> Reading | None:
    said = " dot ".join(words.digits(part) for part in match["host"].split("."))
    if match["port"]:
        said += f" colon {words.digits(match['port'])}"
    if match["prefix"]:
        said += f" slash {say.cardinal(int(match['prefix']))}"
    return Reading("ip", said)


def _ipv6(match: re.Match[str], say: Say) -> Reading | None:
    text = match[0].partition("/")[0]
    if not any(c.isdigit() for c in text):
        return None
    said = " ".join("colon" if part == ":" else words.spell(part) for part in re.findall(r":|[^:]+", text))
    if match["prefix"]:
        said += f" slash {say.cardinal(int(match['prefix']))}"
    return Reading("ip", said)


def _mac(match: re.Match[str], say: Say) -> Reading:
    return Reading("mac", ", ".join(words.spell(part) for part in re.split("[:.-]", match[0])))


def numbered(text: str, say: Say) -> str:
    """2.10.3 -> two point ten point three."""
    return " point ".join(say.number(part) for part in text.split("."))


def _version(match: re.Match[str], say: Say) -> Reading | None:
    said = numbered(match["marked"] or match["bare"], say)
    if match["mark"]:
        said = f"version {said}"
    if match["stage"]:
        stage = match["stage"]
        said += f" {'R C' if stage.lower() == 'rc' else stage}"
        if match["count"]:
            said += f" {say.number(match['count'])}"
    return Reading("version", said)


def _after_word(match: re.Match[str], say: Say) -> Reading:
    return Reading("version", numbered(match["it"], say))


_WORDS = (
    "[Vv]ersion|[Ff]irmware|[Ss]oftware|[Rr]elease|[Rr]evision|[Bb]uild|[Dd]river|[Kk]ernel|Python|Linux"
    "|Ubuntu"
)

RULES: list[Rule] = [
    rule(shapes.EMAIL, _email, digits=False),
    rule(shapes.URL, _url, digits=False),
    rule(
        rf"(?<![\w.@/-])(?=[A-Za-z_.-]{{0,24}}\d)[A-Za-z0-9]{{1,24}}(?:[-_.][A-Za-z0-9]{{1,24}}){{0,8}}\.(?:{_ENDINGS})"
        r"(?![\w/@-]|\.\w)",
        _file,
    ),
    rule(shapes.MAC, _mac),
    rule(shapes.IPV4, _ipv4),
    rule(shapes.IPV6, _ipv6),
]
VERSIONS: list[Rule] = [
    rule(
        rf"(?<!\w)(?:{_WORDS}) (?:is |now )?(?P<it>\d{{1,6}}\.\d{{1,6}})(?![\w%°]|\.\d| ?[%°])", _after_word
    ),
    rule(shapes.VERSION, _version),
]
