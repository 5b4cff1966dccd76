"""Which point after a word ends a sentence, and which belongs to an abbreviation, an initial or a list.

Tables and pure functions of bounded work; any thread. Where the text does not show it, the point ends
nothing: two sentences in one breath are heard better than one that stops in its middle. Neighbours: `split`
asks, and so do the readers of a language that put abbreviations into words.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_SEEN = 24  # characters looked at before a point: the longest abbreviation has fewer
_EAST_ASIAN = "\u2e80"
_OPENERS = "\"'“‘«‹([{「『《〈【〔（［｛"
_BEFORE_LIST = _OPENERS + "-*#>•·–— \t"
# A word with its inner points, at the end of what is looked at.
_TOKEN = re.compile(r"[A-Za-zÀ-ɏ0-9.]*\Z")
_WORD = re.compile(r"[A-Za-zÀ-ɏ]+")
_FIGURES = "0123456789."
_BEHIND = re.compile(r"[\"'”’)\]]{0,4}(?:[^\S\n]{1,24}|(?=\n|\Z))")
_LABEL = re.compile(r"([A-Za-zÀ-ɏ0-9]+)(\.?)[^\S\n]\Z")  # the word before the token

_NEVER = frozenset(
    """dr mr mrs ms messrs mme mlle prof rev hon sgt lt capt cpt col maj gen adm cmdr gov sen rep pres mt ft
    e.g i.e vs cf approx ca viz incl excl resp esp misc mfg mfr attn assoc asst cont dept
    bros sra fr hr std v""".split()
)
# They end a sentence before any capital but that of a name of time.
_CLOSING = frozenset("etc al a.m p.m".split())
# They end a sentence only before a word that begins sentences: names follow them as well.
_BEFORE_NAMES = frozenset(
    """inc ltd co corp llc plc jr sr esq st ave blvd rd hwy ln ph.d m.d b.a m.a b.sc m.sc d.c
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun
    min max temp avg est qty ext tel ref oz lb lbs yd yds hrs mins secs bldg assn univ intl natl
    a.d b.c b.c.e c.e""".split()
)
_CAPITAL_ONLY = frozenset(
    """mar jan sun sat mon wed fri dec st co hon rev gen col rep fr ft lt ln art tab par app op mod pos
    pt""".split()
)
# Before a number or a single letter they are its label; elsewhere most of them are words.
_LABELS = frozenset(
    """no nos nr fig figs sec sect ch chap vol eq eqs art p pp para par app tab ver v mk pos stn rm ste flt pt
    rev ref op ser mod ext tel apt""".split()
)
_AFTER_NUMBER = frozenset(("in", "ft", "gal", "sq"))
# A single capital after one of these is no initial: Plan B. Vitamin C.
_KINDS = frozenset(
    """plan option type class vitamin section part group grade room gate zone model level line unit step
    appendix figure table building terminal platform bay block phase hepatitis choice answer row column
    channel input output port pin point version revision letter variant area wing hall drive key mode case
    station machine door valve pump tank track lane team side exhibit annex stage size item""".split()
)
_TIME_NAMES = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july
    august september october november december eastern pacific central mountain greenwich""".split()
)
# Words that begin a sentence and no name: function words, and what instructions begin with.
_STARTERS = frozenset(
    """a an the this that these those it its he she we you they i his her our your their my there here who
    what when where why how which if in on at for from to by with without as after before during while
    since until because although though and but or so then thus however therefore also yet not no yes all
    some any each every both many most few several such only just even once now today tomorrow yesterday
    please do does did is are was were be have has had can could will would shall should may might must let
    open close press push pull turn switch start stop check wait call use remove insert replace set make
    keep hold go get take put move run see read write send add clean connect disconnect contact follow
    ensure note warning caution danger never always""".split()
)
_LIST = re.compile(r"\d{1,3}(?:\.\d{1,3}){0,4}|[A-Za-z]|[ivx]{1,5}|[IVX]{1,5}")
_HAN_LIST = re.compile(r"[零〇一二三四五六七八九十百]{1,5}\Z")
_DOTTED = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
_ROMAN_OR_LETTER = re.compile(r"[IVXLC]+(?![\w])|[A-Z](?![\w])")


def is_end(text: str, start: int, at: int, after: int) -> bool:
    """Whether the point text[at] ends the sentence that began at `start`.

    after: where the next word or its opening quote stands, behind a blank; not the end of the line.
    """
    seen = text[max(start, at - _SEEN) : at]
    if _is_list(seen, start, at):
        return False
    found = _TOKEN.search(seen)
    token = found.group() if found else ""
    if not token:
        return True
    following = _following(text, after)
    word = _WORD.match(following)
    for rule in _RULES:
        answer = rule(token, seen[: len(seen) - len(token)], following, word.group() if word else "")
        if answer is not None:
            return answer
    return True


def kept(text: str, end: int) -> str:
    """The point before this place if it ends a sentence as well as an abbreviation, else nothing.

    For readers: 5 p.m. is said without a point, but not where the text or the line ends with it.
    """
    if end == 0 or text[end - 1] != ".":
        return ""
    behind = _BEHIND.match(text, end)
    if behind is None:
        return ""
    after = behind.end()
    return "." if after == len(text) or text[after] == "\n" or is_end(text, 0, end - 1, after) else ""


def _following(text: str, after: int) -> str:
    return text[after : after + _SEEN].lstrip(_OPENERS)


def _is_list(seen: str, start: int, at: int) -> bool:
    """The number of a list: all that stands before the point."""
    if at - start >= _SEEN:
        return False
    number = seen.lstrip(_BEFORE_LIST)
    return _LIST.fullmatch(number) is not None or _HAN_LIST.fullmatch(number) is not None


def _title(token: str, before: str, following: str, word: str) -> bool | None:
    return False if _listed(token, _NEVER) else None


def _label(token: str, before: str, following: str, word: str) -> bool | None:
    if not _listed(token, _LABELS):
        return None
    if following[:1].isdigit() or following[:1] == "#":
        return False
    if token.casefold() == "no" and word in ("I", "A"):
        return True  # an answer
    return False if _ROMAN_OR_LETTER.match(following) else None


def _unit(token: str, before: str, following: str, word: str) -> bool | None:
    symbol = token.lstrip(_FIGURES)
    apart = before[-1:] in ("-", " ") and before[-2:-1].isdigit()
    return _starts(word) if symbol.casefold() in _AFTER_NUMBER and (apart or symbol != token) else None


def _closing(token: str, before: str, following: str, word: str) -> bool | None:
    if not _listed(token.lstrip(_FIGURES), _CLOSING) or (token == "al" and not before.endswith("et ")):
        return None
    if following[:1] >= _EAST_ASIAN and following[0].isalpha():
        return True
    return (
        word[:1].isupper() and word.casefold() not in _TIME_NAMES and not (len(word) > 1 and word.isupper())
    )


def _named(token: str, before: str, following: str, word: str) -> bool | None:
    zone = token.isupper() and token.isalpha()  # EST is another thing than est.
    if (_listed(token, _BEFORE_NAMES) and not zone) or _DOTTED.fullmatch(token):
        return _starts(word)
    return None


def _initial(token: str, before: str, following: str, word: str) -> bool | None:
    """A capital alone: an initial, unless it is a kind of something or was spelled out (U S B.)."""
    if not _is_capital(token):
        return None
    label = _LABEL.search(before)
    if label and not label[2] and (_is_capital(label[1]) or label[1].casefold() in _KINDS):
        return None
    return _starts(word) if word else None


_RULES: tuple[Callable[[str, str, str, str], bool | None], ...] = (
    _label,
    _title,
    _unit,
    _closing,
    _named,
    _initial,
)


def _is_capital(token: str) -> bool:
    return len(token) == 1 and token.isupper()


def _starts(word: str) -> bool:
    return word[:1].isupper() and word.casefold() in _STARTERS


def _listed(token: str, table: frozenset[str]) -> bool:
    """A short name that is a word as well is one only with its capital."""
    short = token.casefold()
    return short in table and (short not in _CAPITAL_ONLY or token[0].isupper())
