"""Dates and times of day: GB/T 7408 (ISO 8601) and the usual spellings. Pure.

Years are read digit by digit, months and days as numbers; hours are 点. Neighbours: `numbers.py`; `reader.py`
puts these rules before those of plain numbers.
"""

from __future__ import annotations

import re

from edged.text.chinese.numbers import cardinal, digits, number
from edged.text.chinese.rule import Rule, Scene, whole
from edged.text.span import Span

_YEAR = r"(?:1[5-9]|20|21)\d\d"
_NOT_IN_NUMBER = r"(?<![\dA-Za-z.\-/])(?<!\d:)"
_DATE = re.compile(
    rf"{_NOT_IN_NUMBER}(?P<y>{_YEAR})(?P<s>[-/.])(?P<m>0?[1-9]|1[0-2])(?P=s)(?P<d>3[01]|[12]\d|0?[1-9])"
    r"(?:(?P<t>T)(?=\d\d:)|(?![\dA-Za-z]|[-/.]\d))"
)
# What is done on a day.
_PLANNED = """前 之前 起 截止 到期 上午 下午 早上 晚上 周 星期 检修 保养 停电 停机 停产 维护 开会 盘点 交货
出货 发货 到货 上线 开工 培训 巡检 点检 投产 放假 调休 值班 交付 完工 复工 年检 校准 更换""".split()
_MONTH_DAY = r"(?:0?[1-9]|1[0-2])/(?:3[01]|[12]\d|0?[1-9])"
_SHORT = re.compile(
    rf"(?<![\dA-Za-z.\-/])(?<!\d[: ])(?P<a>{_MONTH_DAY})(?:\s?[-~至到]\s?(?P<b>{_MONTH_DAY}))?"
    rf"(?![\d/A-Za-z%°\"]|[.,-]\d)"
)
_DAY_BEFORE = re.compile(r"(?:时间|日期|期限?|截止|截至|有效|于|定在|改到|自|从)[为是到:：\s]{0,3}$")
_DAY_AFTER = re.compile(rf"\s?(?:{'|'.join(_PLANNED)}|\d{{1,2}}:\d\d)")
_TOGETHER = re.compile(rf"(?<=日期)([:：]?\s?)({_YEAR})(0[1-9]|1[0-2])(3[01]|[12]\d|0[1-9])(?!\d)")
_MONTH = re.compile(rf"{_NOT_IN_NUMBER}({_YEAR})[-/](0[1-9]|1[0-2])(?![\dA-Za-z]|[-/.:]\d)")
_FOREIGN = re.compile(rf"{_NOT_IN_NUMBER}(\d{{1,2}})([/.-])(\d{{1,2}})\2({_YEAR})(?![\dA-Za-z]|[-/.]\d)")
_YEARS = re.compile(
    rf"(?<![\d.,A-Za-z])(?:(?P<a>{_YEAR})\s?(?P<s>[-~/至到])\s?)?(?P<b>{_YEAR})(?=\s?年(?!前|后|内|以[前后]|间))"
)
_SHORT_YEAR = re.compile(
    r"(?<![\d.,A-Za-z第])(?:[2-9]\d(?=年(?:1[0-2]|[1-9])月|年[款版春夏秋冬底初末])|0\d(?=年))"
)
_YEAR_NAME = re.compile(rf"(?<![\d.,A-Za-z])({_YEAR})(?=\s?(?:届|款|版|赛季|财年|学年|年度))")
_CLOCK = (
    r"(?P<{0}hour>[01]?\d|2[0-4]):(?P<{0}minute>[0-5]\d)"
    r"(?::(?P<{0}second>[0-5]\d)(?:\.(?P<{0}part>\d{{1,6}}))?)?"
)
_TIME = re.compile(
    rf"(?<![\d.])(?<!\d:)(?:(?P<early>[AaPp])\.?[Mm]\.?\s?)?{_CLOCK.format('from_')}"
    rf"(?:\s?(?P<to>[-~至到])\s?{_CLOCK.format('to_')})?"
    r"(?:\s?(?P<late>[AaPp])\.?[Mm](?![A-Za-z])|(?P<zone>Z|[+-]\d\d(?::?00)?(?!\d)))?(?![\d:A-Za-z]|\.\d)"
)
_RATIO_BEFORE = re.compile(
    r"(?:比例尺?|比率|比值|比分|总分|以|按|率|领先|胜|败|负|平)\D{0,3}$|比[为是约：:\s]{0,3}$"
)
_IN_A_SUM = re.compile(r"\s?[=+×÷*]|\s?(?:英寸|mm|寸)")
_SPANS = {"d": "天", "h": "小时", "m": "分", "s": "秒"}
_LASTING = re.compile(
    r"(?<![\dA-Za-z.-])(?=\d{1,5}\s?[dhm])(?:(?P<d>\d{1,5})\s?d(?=[ \d])(?:\s(?=\d))?)?(?:"
    r"(?P<h>\d{1,4})\s?h(?:rs?)?(?![A-Za-z])(?:\s(?=\d))?)?"
    r"(?:(?P<m>\d{1,4})\s?m(?:ins?)?(?![A-Za-z])(?:\s(?=\d))?)?(?:(?P<s>\d{1,4}(?:\.\d{1,3})?)\s?s"
    r"(?:ec)?)?(?<!\s)(?![A-Za-z0-9])"
)
_FRENCH = re.compile(r"(?<![\dA-Za-z.:])([01]?\d|2[0-4])h([0-5]\d)(?![\dA-Za-z])")
_HALF_DAY = re.compile(
    r"(?<=[0-9])\s?[-~]\s?(?=(?:[上下]午|晚上?|中午|早上|凌晨|次日)\s?\d{1,2}[:点时])|(?<=周[一二三四五六日天])\s?-\s?(?=周)"
)
_SPENT_BEFORE = re.compile(
    r"(?:用时|耗时|时长|历时|倒计时|还剩|剩余|剩|持续|运行时间|周期|节拍|时间间隔)\D{0,4}$"
)


def _day(year: str, month: str, day: str) -> str:
    return f"{digits(year)}年{cardinal(str(int(month)))}月{cardinal(str(int(day)))}日"


def _date(match: re.Match[str], _: Scene) -> Span:
    return whole(match, _day(match["y"], match["m"], match["d"]), "date")


def _month(match: re.Match[str], _: Scene) -> Span:
    return whole(match, f"{digits(match[1])}年{cardinal(str(int(match[2])))}月", "date")


def _foreign(match: re.Match[str], scene: Scene) -> Span | None:
    """04/05/2026: the order is the option's, unless only the other one is a date."""
    first, second = int(match[1]), int(match[3])
    day_first = scene.options.date_order == "dmy" or match[2] == "."
    month, day = (second, first) if day_first else (first, second)
    if month > 12:
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return whole(match, _day(match[4], str(month), str(day)), "date")


def _short(match: re.Match[str], scene: Scene) -> Span | None:
    """4/15 is a day where a word says so, 12/7 is no fraction; else it is one."""
    days = [tuple(map(int, part.split("/"))) for part in (match["a"], match["b"]) if part]
    told = _DAY_AFTER.match(scene.view, match.end()) or _DAY_BEFORE.search(scene.before(match.start()))
    if not told and (all(month <= day for month, day in days) or _IN_A_SUM.match(scene.view, match.end())):
        return None
    swapped = scene.options.date_order == "dmy" and all(day <= 12 for _, day in days)
    said = (f"{cardinal(str(d if swapped else m))}月{cardinal(str(m if swapped else d))}日" for m, d in days)
    return whole(match, "至".join(said), "date")


def _lasting(match: re.Match[str], _: Scene) -> Span | None:
    """2h30m, 3d 4h: two units and more of time; 12m alone is a length."""
    given = [(name, match[name]) for name in "dhms" if match[name]]
    if len(given) < 2:
        return None
    last = given[-1][0]
    said = ""
    for name, count in given:
        unit = "分钟" if name == last == "m" else _SPANS[name]
        said += number(count.lstrip("0") or "0", measured=True) + unit
    return whole(match, said, "time")


def _french(match: re.Match[str], _: Scene) -> Span:
    """17h30."""
    minutes = f"{_padded(match[2])}分" if match[2] != "00" else ""
    return whole(match, f"{number(str(int(match[1])), measured=True)}点{minutes}", "time")


def _half_day(match: re.Match[str], _: Scene) -> Span:
    """The hyphen of 8:00-下午5:00 and of 周一-周五."""
    return whole(match, "到" if match.string[match.start() - 1] >= "\u4e00" else "至", "range")


def _together(match: re.Match[str], _: Scene) -> Span:
    return Span(match.start(2), match.end(), _day(match[2], match[3], match[4]), "date")


def _years(match: re.Match[str], _: Scene) -> Span:
    said = digits(match["b"])
    if match["a"]:
        said = f"{digits(match['a'])}{'到' if match['s'] == '到' else '至'}{said}"
    return whole(match, said, "date")


def _year_digits(match: re.Match[str], _: Scene) -> Span:
    return whole(match, digits(match.group()), "date")


def _clock(match: re.Match[str], side: str) -> str:
    hour, minute, second, part = (match[f"{side}_{name}"] for name in ("hour", "minute", "second", "part"))
    said = f"{number(str(int(hour)), measured=True)}点"
    if minute != "00" or second:
        said += f"{_padded(minute)}分"
    if second:
        said += f"{_padded(second)}{'点' + digits(part) if part else ''}秒"
    return said


def _padded(two: str) -> str:
    """05 is 零五, 00 is 零."""
    said = cardinal(str(int(two)))
    return f"零{said}" if two[0] == "0" and two != "00" else said


def _spent(match: re.Match[str]) -> str:
    """A time that passes: 05:30 is five minutes, 01:05:30 an hour more."""
    first, second, third = (str(int(match[f"from_{n}"] or 0)) for n in ("hour", "minute", "second"))
    part = f"点{digits(match['from_part'])}" if match["from_part"] else ""
    if not match["from_second"]:
        return f"{number(first, measured=True)}分{number(second)}秒"
    hours = f"{number(first, measured=True)}小时" if first != "0" else ""
    return f"{hours}{number(second)}分{number(third)}{part}秒"


def _zone(written: str | None) -> str:
    if not written:
        return ""
    hours = int(written[1:3] or 0) if written != "Z" else 0
    if not hours:
        return "世界时"
    return f"{'东' if written[0] == '+' else '西'}{cardinal(str(hours))}区"


def _time(match: re.Match[str], scene: Scene) -> Span | None:
    before = scene.before(match.start())
    half = match["early"] or match["late"]
    if not half and not match["to"] and not match["zone"]:
        if not match["from_second"] and _RATIO_BEFORE.search(before):
            return None
        if _SPENT_BEFORE.search(before):
            return whole(match, _spent(match), "time")
    said = _clock(match, "from")
    if match["to"]:
        said += f"{'到' if match['to'] == '到' else '至'}{_clock(match, 'to')}"
    if half:
        said = ("上午" if half in "Aa" else "下午") + said
    return whole(match, _zone(match["zone"]) + said, "time")


RULES = (
    Rule(_DATE, _date, "-/."),
    Rule(_FOREIGN, _foreign, "-/."),
    Rule(_MONTH, _month, "-/"),
    Rule(_SHORT, _short, "/"),
    Rule(_TOGETHER, _together, "期"),
    Rule(_YEARS, _years, "年"),
    Rule(_SHORT_YEAR, _year_digits, "年"),
    Rule(_YEAR_NAME, _year_digits, "届款版赛财学年"),
    Rule(_FRENCH, _french, "h"),
    Rule(_LASTING, _lasting, "hmd"),
    Rule(_HALF_DAY, _half_day, "-~"),
    Rule(_TIME, _time, ":"),
)
