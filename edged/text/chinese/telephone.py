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
    r"(?:电话|致电|热线|手机|传真|呼叫|拨打|拨|分机|短号|内线|总机|客服|号码|来电|转接|联系)"
    r"(?:号码|号)?(?:是|为|到|至|给|请|：|:|\s)*$"
)
_NO_CALL_AFTER = re.compile(r"\s?[月日年点时分号层楼室%‰:]")
_EMERGENCY = re.compile(
    r"(?<=打)1(?:10|19|20|22)(?![\d.])(?!\s?[个台件次米吨元])"
    r"|(?<![\dA-Za-z.])1(?:10|19|20|22|2315|2345|2333|0086|0010|0000)"
    r"(?=\s?(?:报警|急救|火警|热线|救护|指挥|电话|平台))"
)


def _phone(match: re.Match[str], _: Scene) -> Span:
    written = match.group()
    extension = _EXTENSION.match(written)
    if extension:
        written = f"{written[: extension.end() - 1]}转{written[extension.end() :]}"
    kept = re.sub(r"[^\d+转]", "", written)
    return whole(match, call_digits(kept).replace("+", "加"), "telephone")


def _short(match: re.Match[str], scene: Scene) -> Span | None:
    end = match.end()
    if not _CALL_BEFORE.search(scene.before(match.start())) or _NO_CALL_AFTER.match(scene.view, end):
        return None
    spaced = scene.view.startswith(" ", end)
    if measures.follows(scene.view, match.start(), end) or units.read(scene.view, end + spaced, spaced):
        return None
    return whole(match, call_digits(re.sub(r"\D", "", match.group())), "telephone")


def _emergency(match: re.Match[str], _: Scene) -> Span:
    return whole(match, call_digits(match.group()), "telephone")


RULES = (Rule(_PHONE, _phone), Rule(_SHORT, _short), Rule(_EMERGENCY, _emergency, "1"))
