"""What names a thing rather than counts it: serial and part numbers, versions, standards, abbreviations.

Digits are read one by one with 幺 for 1; a short number behind letters is read as a number (M12, A4). The
words before a number tell what it is (编号, SN). Pure. Neighbours: `words.py`, `numbers.py`.
"""

from __future__ import annotations

import re

from edged.text.chinese import units
from edged.text.chinese.numbers import call_digits, cardinal, digits, number
from edged.text.chinese.rule import Rule, Scene, whole
from edged.text.chinese.words import is_abbreviation, letters, tidy
from edged.text.span import Span

_NAMES = """
编号 序列号 序号码 产品号 工号 单号 订单 订单号 工单 工单号 批号 批次 批次号 料号 物料 物料号 件号 图号
条码 证号 身份证 身份证号 身份证号码 卡号 账号 密码 验证码 校验码 车牌 车牌号 邮编 邮政编码 代码 故障码
错误码 报警码 代号 资产号 设备号 机号 站号 流水号 型号 货号 箱号 柜号 航班 航班号 车次 端口 端口号 地址码
口令 QQ S/N P/N SN PN ID PIN
""".split()
_NAMED = re.compile(
    rf"(?<![A-Za-z])(?:{'|'.join(sorted(_NAMES, key=len, reverse=True))})\s?(?:是|为|：|:|#)?\s?"
    r"(?P<code>(?=[A-Za-z_./-]{0,12}\d)[A-Za-z0-9]+(?:[-_/.][A-Za-z0-9]+)*)"
)
_VERSION = re.compile(
    r"(?<![A-Za-z0-9.])(?:(?P<v>[vV])(?:er(?:sion)?)?[. ]?(?=\d))?(?P<n>\d{1,6}(?:\.\d{1,6}){0,4})"
    r"(?P<tail>[-+]?(?:alpha|beta|rc|RC|dev|build|b)\.?\d{0,6})?(?![A-Za-z0-9]|\.\d)"
)
_VERSION_BEFORE = re.compile(
    r"(?:版本号?|固件|软件|升级[到至为]?|更新[到至]|[Vv]ersion|[Ff]irmware|Python|Windows|Ubuntu|Android|iOS|Linux)"
    r"(?:是|为|：|:|\s)*$"
)
_CODE = re.compile(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9./_-]{0,40}\d)(?=[0-9./_-]{0,40}[A-Za-z])"
    r"[A-Za-z0-9]+(?:[-_/.][A-Za-z0-9]+){0,8}(?![A-Za-z0-9])"
)
_MEASURED = re.compile(r"\d+(?:\.\d+)?(?:[-xX*]\d+(?:\.\d+)?)*(?:[eE][-+]?\d+(?![A-Za-z\d]))?")
_BODIES = "GB JB HG SH YB DL ISO IEC IEEE EN DIN ANSI ASTM UL JIS RFC HJ TSG"
_STANDARD = re.compile(
    rf"(?<![A-Za-z0-9])(?:{'|'.join(_BODIES.split())})(?:/[A-Z]{{1,4}})?\s\d{{1,6}}(?:[.-]\d{{1,6}}){{0,3}}"
    r"(?![A-Za-z0-9])"
)
_EDITION = re.compile(
    rf"(?<![A-Za-z0-9])((?:{'|'.join(_BODIES.split())})(?:/[A-Z]{{1,4}})?[\s-]?\d{{1,6}}(?:[.-]\d{{1,6}}){{0,3}}):((?:19|20)\d\d)(?!\d)"
)
_PLATE = re.compile(
    r"(?<=[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼使领])([A-Z])\s?·?\s?(?=[A-Z]{0,5}\d)([A-Z0-9]{5,6})(?![A-Za-z0-9])"
)
_DIGIT_CODE = re.compile(
    r"(?<![\dA-Za-z.])\d{1,12}(?:-\d{1,12}){2,6}(?![\dA-Za-z]|\.\d)"
    r"|(?<![\dA-Za-z.-])(?:\d{3,12}-0\d{0,11}|0\d{1,11}-\d{1,12})(?![\dA-Za-z-]|\.\d)"
)
_ROOM = re.compile(
    r"(?<![\dA-Za-z.,])\d{3,5}(?=\s?(?:室|房|会议室|教室|路公交|路车|国道|省道|次列车|航班|宿舍|不锈钢|型钢))"
)
_THREAD = re.compile(
    r"(?<![A-Za-z0-9])M(\d{1,3}(?:\.\d)?)\s?[x×*X]\s?(\d{1,3}(?:\.\d{1,3})?)"
    r"(?:\s?[x×*X]\s?(\d{1,4}))?(?![A-Za-z0-9]|\.\d)"
)
_PROTECTION = re.compile(r"(?<![A-Za-z0-9])IP\s?([0-6X])([0-9X])(K?)(?![A-Za-z0-9])")
_LETTERS = re.compile(r"(?<![A-Za-z'])[A-Z]{2,6}(?![A-Za-z'])")
_PH = re.compile(r"(?<![A-Za-z])pH(?![A-Za-z])")
_AND = re.compile(r"(?<![A-Za-z])([A-Z]{1,3})&([A-Z]{1,3})(?![A-Za-z])")
_SLASHED = re.compile(r"(?<![A-Za-z0-9/])([A-Z])/([A-Z])(?![A-Za-z0-9/])")
_PIECE = re.compile(r"[A-Za-z]+|\d+(?:\.\d+)?|.")
_LONG = 3  # digits of a code from which on they are read one by one
_MARKS = {"-": "杠", "_": "下划线", "/": "斜杠", ".": "点", "+": "加"}


def _named(match: re.Match[str], _: Scene) -> Span:
    code = match["code"]
    said = cardinal(code) if code.isdigit() and len(code) < _LONG else by_one(code)
    return Span(match.start("code"), match.end("code"), said, "identifier")


def by_one(code: str) -> str:
    """A code character by character."""
    said = (call_digits(c) if c.isdigit() else _MARKS.get(c, f" {c.upper()} ") for c in code)
    return tidy("".join(said))


def _version(match: re.Match[str], scene: Scene) -> Span | None:
    written = match["n"]
    points = written.count(".")
    named = bool(match["v"]) or (
        points >= 1 and _VERSION_BEFORE.search(scene.before(match.start())) is not None
    )
    if not named and points < 2 and not (match["tail"] and points):
        return None
    said = "点".join(digits(part) if len(part) > 3 else cardinal(part) for part in written.split("."))
    tail = match["tail"] or ""
    return whole(match, tidy(("V " if match["v"] else "") + said + (pieces(tail) if tail else "")), "version")


def _code(match: re.Match[str], scene: Scene) -> Span | None:
    written = match.group()
    if written[0].isdigit() and _is_measure(match, scene):
        return None
    return whole(match, pieces(written), "identifier")


def _is_measure(match: re.Match[str], scene: Scene) -> bool:
    """A number and its unit (24V, 4-20mA, 10x20mm), or a power of ten (1e-3)."""
    end = match.start()
    while measure := _MEASURED.match(scene.view, end, match.end()):
        end = measure.end()
        unit = units.read(scene.view, end, spaced=False)
        if end == match.end() or (unit is not None and unit.end >= match.end()):
            return True
        if unit is None or not scene.view.startswith("/", unit.end):  # 6kV/0.4kV
            return False
        end = unit.end + 1
    return False


def pieces(code: str) -> str:
    """A code as people say it: letters one by one, words as words, digits one by one when they are many."""
    many = sum(map(str.isdigit, code)) >= _LONG and "." not in code
    return tidy("".join(_piece(piece, many) for piece in _PIECE.findall(code)))


def _piece(piece: str, many: bool) -> str:
    if piece[0].isdigit():
        return call_digits(piece) if many and "." not in piece else number(piece)
    if piece.isalpha():
        spelled = piece.isupper() or len(piece) <= 2 or (len(piece) <= 4 and piece[:2].isupper())  # IPv
        return f" {letters(piece) if spelled else piece} "
    return _MARKS.get(piece, " ")


def _standard(match: re.Match[str], _: Scene) -> Span:
    return whole(match, by_one(match.group().replace(" ", "")), "identifier")


def _edition(match: re.Match[str], _: Scene) -> Span:
    """ISO9001:2015."""
    return whole(match, f"{by_one(match[1].replace(' ', ''))}冒号{digits(match[2])}", "identifier")


def _plate(match: re.Match[str], _: Scene) -> Span:
    return whole(match, tidy(f" {match[1]} {by_one(match[2])}"), "identifier")


def _digit_code(match: re.Match[str], _: Scene) -> Span:
    return whole(match, by_one(match.group()), "identifier")


def _room(match: re.Match[str], _: Scene) -> Span:
    return whole(match, call_digits(match.group()), "identifier")


def _thread(match: re.Match[str], _: Scene) -> Span:
    said = "乘".join(number(part) for part in match.groups() if part)
    return whole(match, f"M{said}", "identifier")


def _protection(match: re.Match[str], _: Scene) -> Span:
    """Two numerals that each mean something (IEC 60529)."""
    return whole(match, tidy(f"I P {digits(match[1])} {digits(match[2])} {match[3]}"), "identifier")


def _abbreviation(match: re.Match[str], _: Scene) -> Span | None:
    return whole(match, letters(match.group()), "acronym") if is_abbreviation(match.group()) else None


def _spelled(match: re.Match[str], _: Scene) -> Span:
    return whole(match, letters(match.group()), "acronym")


def _and(match: re.Match[str], _: Scene) -> Span:
    return whole(match, f"{letters(match[1])} and {letters(match[2])}", "acronym")


def _slashed(match: re.Match[str], _: Scene) -> Span:
    """I/O, A/D."""
    return whole(match, f"{match[1]} {match[2]}", "acronym")


RULES = (
    Rule(_EDITION, _edition, ":"),
    Rule(_PLATE, _plate),
    Rule(_STANDARD, _standard),
    Rule(_PROTECTION, _protection, "I"),
    Rule(_NAMED, _named),
    Rule(_VERSION, _version, "vV.b"),
    Rule(_THREAD, _thread, "M"),
    Rule(_CODE, _code),
    Rule(_DIGIT_CODE, _digit_code, "-"),
    Rule(_ROOM, _room),
)
LETTER_RULES = (
    Rule(_PH, _spelled, "H"),
    Rule(_AND, _and, "&"),
    Rule(_SLASHED, _slashed, "/"),
    Rule(_LETTERS, _abbreviation),
)
