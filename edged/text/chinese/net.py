"""URLs, e-mail, IP and MAC addresses, read so that a listener can write them down. Pure.

Digits are read one by one (幺 for 1), 点 and 艾特 are said, words stay words, letters that are no word are
said one by one. Neighbours: `codes.py` for letters.
"""

from __future__ import annotations

import re

from edged.text.chinese.numbers import call_digits
from edged.text.chinese.rule import Rule, Scene, whole
from edged.text.chinese.words import letters, tidy
from edged.text.span import Span

_URL = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:https?|ftps?|sftp|wss?|rtsp|mqtts?|file|opc\.tcp)://[!-;=?-Z\\^-z~]{1,500}"
    r"|(?<![@.\-])www\.[!-;=?-Z\\^-z~]{1,500}"
    r"|(?<![@.\-])(?:[A-Za-z0-9-]{1,63}\.){1,4}(?:com|cn|net|org|gov|edu|io|local|lan|info|de|tw|hk)"
    r"(?![A-Za-z0-9.-])(?::\d{1,5})?(?:/[!-;=?-Z\\^-z~]{0,500})?)"
)
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)
_IP4 = re.compile(
    r"(?<![\dA-Za-z.])(\d{1,3}(?:\.\d{1,3}){3})(?::(\d{1,5}))?(?:/(\d{1,2}))?(?![\dA-Za-z]|\.\d)"
)
_IP6 = re.compile(
    r"(?<![0-9A-Za-z.])(?<!::)(?<!\b[0-9A-Fa-f]:)(?<!\b[0-9A-Fa-f]{2}:)(?<!\b[0-9A-Fa-f]{3}:)"
    r"(?<!\b[0-9A-Fa-f]{4}:)(?=[0-9A-Fa-f:]{0,39}(?:[0-9A-Fa-f]::|::[0-9A-Fa-f]|(?::[0-9A-Fa-f]{1,4}){5}))"
    r"[0-9A-Fa-f:]{3,39}(?:/(\d{1,3}))?(?![0-9A-Za-z:])"
)
_MAC = re.compile(
    r"(?<![0-9A-Za-z-])(?<!\b[0-9A-Fa-f]{2}:)[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2})(?:\1[0-9A-Fa-f]{2}){4}(?![0-9A-Za-z]|[:-][0-9A-Za-z])"
)
_MARKS = {
    ".": "点",
    "@": "艾特",
    "/": "斜杠",
    "\\": "反斜杠",
    "-": "杠",
    "_": "下划线",
    ":": "冒号",
    "?": "问号",
    "=": "等于",
    "&": "和",
    "#": "井号",
    "%": "百分号",
    "+": "加",
    "~": "波浪线",
    "*": "星号",
    "$": "美元",
}
_PART = re.compile(r"[A-Za-z]+|\d+|.", re.DOTALL)
_SPELLED = frozenset(
    ("http", "https", "ftp", "ftps", "sftp", "www", "ws", "wss", "rtsp", "cn", "io", "tcp", "html", "php")
)
_VOWEL = re.compile("[aeiouy]")
_SYLLABLE = re.compile(
    "^(?:[^aeiou][aeiouy][^aeiou]|[aeiou](?:ct|dd|ff|ld|ll|nd|pp|ps|rg|rt|sk)|go|my|me|we|no|up|to|on|do|so)$"
)


def spelled(written: str) -> str:
    """An address aloud."""
    return tidy("".join(map(_part, _PART.findall(written))))


def _part(part: str) -> str:
    if part.isdigit():
        return call_digits(part)
    if part.isalpha() and part.isascii():
        word = part.lower() not in _SPELLED and (_SYLLABLE if len(part) < 4 else _VOWEL).search(part.lower())
        return f" {part.lower() if word else letters(part)} "
    return _MARKS.get(part, "")


def _url(match: re.Match[str], _: Scene) -> Span:
    written = match.group().rstrip(".,;:!?'\")")
    return Span(match.start(), match.start() + len(written), spelled(written), "url")


def _email(match: re.Match[str], _: Scene) -> Span:
    return whole(match, spelled(match.group()), "email")


def _ip4(match: re.Match[str], scene: Scene) -> Span | None:
    if any(int(part) > 255 for part in match[1].split(".")) or re.search(
        r"(?:版本|[Vv])\s?$", scene.before(match.start())
    ):
        return None
    said = call_digits(match[1]).replace(".", "点")
    said += f"端口{call_digits(match[2])}" if match[2] else ""
    said += f"斜杠{call_digits(match[3])}" if match[3] else ""
    return whole(match, said, "ip")


def _ip6(match: re.Match[str], _: Scene) -> Span:
    return whole(match, spelled(match.group().upper()), "ip")


def _mac(match: re.Match[str], _: Scene) -> Span:
    """Pairs, with a short pause between them, as they are read out."""
    pairs = re.split("[:-]", match.group().upper())
    return whole(match, "、".join(tidy(call_digits(" ".join(pair))) for pair in pairs), "mac")


RULES = (
    Rule(_EMAIL, _email, "@"),
    Rule(_URL, _url, "."),
    Rule(_MAC, _mac, ":-"),
    Rule(_IP4, _ip4, "."),
    Rule(_IP6, _ip6, ":"),
)
