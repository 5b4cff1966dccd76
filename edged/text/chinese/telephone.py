"""Telephone numbers: one by one, with 幺 for 1 so that nobody hears 七. Pure.

Numbers that look like one are one; shorter ones are where the words before them say so (内线 211), unless
they count something (呼叫 20 次). Neighbours: `codes.py`; `reader.py` puts these rules first of the two.
"""

from __future__ import annotations

import re

from edged.text.chinese import measures, units
from edged.text.chinese.numbers import call_digits
from edged.text.chinese.rule import Rule, Scene, whole
from edged.text.span import Span

_MOBILE = r"(?:\+?86[- ]?)?1[3-9]\d(?:\d{8}|[- ]\d{4}[- ]\d{4})"
_LANDLINE = r"(?:\(0\d{2,3}\)\s?|(?:\+?86[- ]?)?0\d{2,3}[- ])\d{3,4}[- ]?\d{4}(?:(?:-|转)\d{1,5})?"
_SERVICE = r"[48]00-\d{3}-?\d{4}|[48]00-\d{4}-\d{3}|[48]00 \d{3} \d{4}"
_ABROAD = r"\+\d{1,3}(?:[- ]\(?\d{1,5}\)?){2,5}|\+\d{8,15}"
_PHONE = re.compile(rf"(?<![\dA-Za-z.+-])(?:{_MOBILE}|{_LANDLINE}|{_SERVICE}|{_ABROAD})(?![\dA-Za-z]|[-.]\d)")
_EXTENSION = re.compile(r"0\d+-\d{7,8}-(?=\d{1,5}$)")
_SHORT = re.compile(r"(?<![\dA-Za-z.])\d[\d -]{1,18}\d(?![\d.%])")
_CALL_BEFORE = re.compile(
    r"(?:电话|致电|[Cc]all|[Dd]ial|[Ee]xt\.?|[Tt]el\.?|[Pp]hone|[Hh]otline|热线|手机|传真|呼叫|拨打|拨|分机|短号|内线|总机|客服|号码|来电|转接|联系)"
    r"(?:号码|号)?(?:是|为|到|至|给|请|：|:|\s)*$"
)
_NO_CALL_AFTER = re.compile(r"\s?[月日年点时分号层楼室%‰:]")
_EMERGENCY = re.compile(
    r"(?<=打)1(?:10|19|20|22)(?![\d.])(?!\s?[个台件次米吨元])"
    r"|(?<![\dA-Za-z.])1(?:10|19|20|22)(?![\dA-Za-z.%‰:])"
    r"|(?<![\dA-Za-z.])1(?:10|19|20|22|2315|2345|2333|0086|0010|0000)"
    r"(?=\s?(?:报警|急救|火警|热线|救护|指挥|电话|平台))"
)


_LISTED = 8  # numbers after the first
_HELP_BEFORE = re.compile(
    r"(?:火警|报警|急救|消防|匪警|救护|交警|警察|求助|紧急)(?:电话|热线|号码)?(?:是|为|请|：|:|\s){0,3}$"
)
_NAMED_AFTER = re.compile(r"\s?(?:报警|急救|火警|热线|救护|指挥|电话|平台)")
_ALSO = re.compile(r"\s?(?P<joint>[、/或和及与]|或者|[,，])\s?(?P<number>\d{3,12})(?![\dA-Za-z.%‰:-])")


def _phone(match: re.Match[str], _: Scene) -> Span:
    written = match.group()
    extension = _EXTENSION.match(written)
    if extension:
        written = f"{written[: extension.end() - 1]}转{written[extension.end() :]}"
    kept = re.sub(r"[^\d+转]", "", written)
    return whole(match, call_digits(kept).replace("+", "加"), "telephone")


def _short(match: re.Match[str], scene: Scene) -> Span | None:
    if not _CALL_BEFORE.search(scene.before(match.start())) or _counts(scene, match.start(), match.end()):
        return None
    return _with_others(match, re.sub(r"\D", "", match.group()), scene)


def _emergency(match: re.Match[str], scene: Scene) -> Span | None:
    """119 where a word before or after it says what it is for."""
    end = match.end()
    named = _NAMED_AFTER.match(scene.view, end) or scene.before(match.start(), 1) == "打"
    if not named and (
        not _HELP_BEFORE.search(scene.before(match.start())) or _counts(scene, match.start(), end)
    ):
        return None
    return _with_others(match, match.group(), scene)


def _counts(scene: Scene, start: int, end: int) -> bool:
    """Whether a measure word, a unit or a part of a date follows."""
    if _NO_CALL_AFTER.match(scene.view, end):
        return True
    spaced = scene.view.startswith(" ", end)
    return (
        measures.follows(scene.view, start, end) or units.read(scene.view, end + spaced, spaced) is not None
    )


def _with_others(match: re.Match[str], number: str, scene: Scene) -> Span:
    """A number and those that are listed after it: 8012、8013和8014."""
    said, end = call_digits(number), match.end()
    for _ in range(_LISTED):
        also = _ALSO.match(match.string, end)
        if also is None or _counts(scene, also.start("number"), also.end()):
            break
        joint = also["joint"]
        if joint in ",，" and "\u4e00" <= scene.view[also.end() : also.end() + 1] <= "\u9fff":
            break
        said += ("、" if joint == "/" else joint) + call_digits(also["number"])
        end = also.end()
    return Span(match.start(), end, said, "telephone")


RULES = (Rule(_PHONE, _phone), Rule(_SHORT, _short), Rule(_EMERGENCY, _emergency, "1"))
