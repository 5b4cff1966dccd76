"""What addresses, versions and emoji look like in any language: detection only, nothing is read here.

Patterns over folded text (`edged.text.fold`), each bounded. Neighbours: the readers of the languages put
into words what these find. Groups: `host` and such are named where a reader needs the parts.
"""

from __future__ import annotations

import html
import re
import unicodedata

_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_TOP = (
    "com|org|net|edu|gov|mil|int|io|info|biz|dev|app|ai|tv|me|co|eu|uk|us|de|fr|it|es|nl|be|ch|at|se|no|dk|"
    "fi|pl|cz|jp|cn|kr|in|au|nz|ca|br|ru|za|sg|hk|tw|mx|local|lan|example|test|html|online|cloud|tech"
)
_PATH = r"[A-Za-z0-9_.~:/?#@!$&'()*+,;=%-]{0,300}[A-Za-z0-9_/~=&#%-]"
_BEFORE = r"(?<![A-Za-z0-9_@.-])"

URL = (
    rf"{_BEFORE}(?:(?:[Hh][Tt][Tt][Pp][Ss]?|[Ff][Tt][Pp][Ss]?|[Ww][Ss][Ss]?|rtsp|mqtts?|tcp|udp|file|opc\.tcp)://{_PATH}"
    rf"|[Ww]{{3}}\.{_HOST}(?:\.{_HOST}){{1,6}}(?::\d{{1,5}})?(?:[/?#]{_PATH}|/)?"
    rf"|{_HOST}(?:\.{_HOST}){{0,5}}\.(?:{_TOP})(?::\d{{1,5}})?(?![A-Za-z0-9-]|\.[A-Za-z0-9])(?:[/?#]{_PATH}|/)?)"
)
EMAIL = (
    r"(?<![A-Za-z0-9_.+-])(?P<user>[A-Za-z0-9_](?:[A-Za-z0-9_.+%-]{0,62}[A-Za-z0-9_+-])?)"
    rf"@(?P<host>{_HOST}(?:\.{_HOST}){{1,6}})"
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
IPV4 = (
    rf"(?<![\w.])(?P<host>{_OCTET}(?:\.{_OCTET}){{3}})(?![\w]|\.\d)"
    r"(?::(?P<port>\d{1,5})(?!\d)|/(?P<prefix>\d{1,2})(?![\d/]))?"
)
_H16 = r"[0-9A-Fa-f]{1,4}"
IPV6 = (
    r"(?<![\w.])(?<!::)(?<!\b[0-9A-Fa-f]:)(?<!\b[0-9A-Fa-f]{2}:)(?<!\b[0-9A-Fa-f]{3}:)(?<!\b[0-9A-Fa-f]{4}:)"
    rf"(?:{_H16}(?::{_H16}){{7}}|{_H16}(?::{_H16}){{0,6}}::(?:{_H16}(?::{_H16}){{0,6}})?"
    rf"|::{_H16}(?::{_H16}){{0,6}})(?![\w:])(?:/(?P<prefix>\d{{1,3}})(?!\d))?"
)
MAC = (
    r"(?<![\w.-])(?<!\b[0-9A-Fa-f]{2}:)(?:[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}"
    r"|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2})(?![\w:-]|\.\w)"
)
VERSION = (
    r"(?<![^\W_])(?<!\.)(?:(?P<mark>v\.?|V\.?(?=\d{1,6}\.\d))(?P<marked>\d{1,6}(?:\.\d{1,6}){0,4})|(?P<bare>\d{1,6}(?:\.\d{1,6}){2,4}))"
    r"(?:[-+.]?(?P<stage>alpha|beta|rc|RC|dev|post|build)(?:[.-]?(?P<count>\d{1,4}))?)?(?![\w]|\.\d)"
)

_BASE = (
    "[\u231a-\u231b\u23e9-\u23f3\u23f8-\u23fa\u25aa-\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2775\u2794-\u27bf"
    "\u2b05-\u2b07\u2b1b-\u2b1c\u2b50\u2b55\U0001f000-\U0001f0ff\U0001f170-\U0001f1e5\U0001f200-\U0001f2ff\U0001f300-\U0001faff]"
)
_LOOK = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]?"
_FLAG = "[\U0001f1e6-\U0001f1ff]"
EMOJI = (
    f"{_FLAG}{_FLAG}?|[0-9#*]\ufe0f?\u20e3|{_BASE}{_LOOK}(?:\u200d(?:{_BASE}"
    f"|[\u2640\u2642\u2695]){_LOOK}){{0,8}}"
)
_EMOJI = re.compile(f"(?:{EMOJI})")


def is_emoji(text: str) -> bool:
    return _EMOJI.fullmatch(text) is not None


def emoji_name(emoji: str) -> str:
    """The Unicode name of what it shows, in small letters; "flag" for flags, "" where it has no name.

    Selectors and skin colours are passed over; of a joined sequence every member is named.
    """
    if "\U0001f1e6" <= emoji[0] <= "\U0001f1ff":
        return "flag"
    shown = (c for c in emoji if c not in "\u200d\ufe0e\ufe0f" and not "\U0001f3fb" <= c <= "\U0001f3ff")
    names = (unicodedata.name(c, "").lower() for c in shown)
    return " ".join(name for name in names if name)


def referenced(reference: str) -> str:
    """The character of a numeric reference of HTML (&#56; or &#x38;), "" for none that is seen."""
    character = html.unescape(reference)
    return character if len(character) == 1 and character.isprintable() and character != "&" else ""
