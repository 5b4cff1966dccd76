"""Signs, marks and single characters that have words: mathematics, Greek, Roman numerals, emoji, markup. Pure.

Neighbours: `reader.py` puts the markup first and the signs last.
"""

from __future__ import annotations

import re
import unicodedata

from edged.text.chinese.numbers import cardinal, value
from edged.text.chinese.rule import MASK, Rule, Scene, whole
from edged.text.span import Span

_TAGS = (
    "a|b|i|u|s|p|br|hr|div|span|strong|em|small|sub|sup|font|center|ul|ol|li|table|tr|td|th|h[1-6]|img|speak"
)
_TAG = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]{{0,200}})?/?>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:nbsp|amp|lt|gt|quot|apos|#39|#\d{1,5});")
_ENTITIES = {"amp": "和", "lt": "小于", "gt": "大于"}
_EMPHASIS = re.compile(r"\*{2,3}|__|~~|`{1,3}|(?m:^[ \t]{0,3}(?:#{1,6}|[-*+]|>)[ \t]+)")
_TOPIC = re.compile(r"(?<![\w#&])#(?=[^\W\d_])")
_SELECTORS = "\ufe00-\ufe0f\u200d\u20e3\U000e0020-\U000e007f\U0001f3fb-\U0001f3ff"
_EMOJI = re.compile(
    f"[\U0001f000-\U0001faff\u2600-\u26ff\u2702-\u2757\u2763-\u2767\u2795-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u203c\u2049"
    f"\u231a\u231b\u23e9-\u23fa][{_SELECTORS}]{{0,8}}|[{_SELECTORS}]{{1,8}}"
)
# Names as in the Unicode CLDR, of what a machine's message may carry.
_EMOJI_NAMES = {
    "⚠": "警告",
    "✅": "勾号",
    "✔": "勾号",
    "❌": "叉号",
    "✖": "叉号",
    "❗": "感叹号",
    "❓": "问号",
    "⛔": "禁止通行",
    "🚫": "禁止",
    "🚨": "警灯",
    "🔥": "火",
    "⚡": "高压",
    "☢": "辐射",
    "☣": "生物危害",
    "☠": "骷髅",
    "🔴": "红色圆",
    "🟢": "绿色圆",
    "🟡": "黄色圆",
    "🔵": "蓝色圆",
    "🟠": "橙色圆",
    "🔧": "扳手",
    "🔨": "锤子",
    "⚙": "齿轮",
    "🔋": "电池",
    "🔌": "电源插头",
    "💡": "灯泡",
    "🔔": "铃铛",
    "🔒": "锁",
    "🔓": "打开的锁",
    "📞": "电话",
    "📷": "相机",
    "🌡": "温度计",
    "💧": "水滴",
    "⏰": "闹钟",
    "⏱": "秒表",
    "⏳": "沙漏",
    "🚪": "门",
    "🚛": "货车",
    "🏭": "工厂",
    "🤖": "机器人",
    "👍": "拇指向上",
    "👎": "拇指向下",
    "👷": "建筑工人",
    "😀": "笑脸",
    "🎉": "庆祝",
    "❤": "红心",
    "⭐": "星星",
    "☀": "太阳",
    "🛑": "停止标志",
    "🚧": "路障",
    "📦": "包裹",
    "📢": "喇叭",
    "🧯": "灭火器",
}
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρστυφχψωΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩς",
        "阿尔法 贝塔 伽马 德尔塔 艾普西隆 泽塔 伊塔 西塔 约塔 卡帕 兰姆达 缪 纽 克西 奥密克戎 派 柔 西格马 陶 宇普西隆 斐 希 普西 欧米伽 "
        "阿尔法 贝塔 伽马 德尔塔 艾普西隆 泽塔 伊塔 西塔 约塔 卡帕 兰姆达 缪 纽 克西 奥密克戎 派 柔 西格马 陶 宇普西隆 斐 希 普西 欧米伽 "
        "西格马".split(),
        strict=True,
    )
)
_GREEK_LETTER = re.compile(r"(?<![\u0370-\u03ff])[\u0391-\u03a9\u03b1-\u03c9](?![\u0370-\u03ff])")
_ROMAN_WORD = re.compile(
    r"(?:(?<=第)|(?<![A-Za-z0-9]))(?=[IVX])(?:X{0,2})(?:IX|IV|V?I{0,3})(?=\s?[级类期区段章部卷])|(?<=第)(?=[IVX])X{0,2}(?:IX|IV|V?I{0,3})(?![A-Za-z])"
)
_NUMERAL = re.compile(r"[^\x00-\x7f\u3000-\u3020\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff01-\uff0f]")
_SQUARE = re.compile(r"(?<=[A-Za-z)）\u4e00-\u9fff])[²³]")
_SIGNS = {
    "<=": "小于等于",
    ">=": "大于等于",
    "!=": "不等于",
    "==": "等于",
    "=>": "到",
    "->": "到",
    "+/-": "正负",
    "=": "等于",
    "≠": "不等于",
    "≈": "约等于",
    "≤": "小于等于",
    "≥": "大于等于",
    "<": "小于",
    ">": "大于",
    "+": "加",
    "±": "正负",
    "×": "乘",
    "÷": "除以",
    "√": "根号",
    "∞": "无穷大",
    "%": "百分号",
    "‰": "千分号",
    "&": "和",
    "@": "艾特",
    "#": "井号",
    "°": "度",
    "℃": "摄氏度",
    "℉": "华氏度",
    "€": "欧元",
    "£": "英镑",
    "¥": "元",
    "$": "美元",
    "№": "号",
    "→": "到",
    "^": "的次方",
}
_SILENT = "©®™"
_SIGN = re.compile("|".join(map(re.escape, sorted(_SIGNS, key=len, reverse=True))) + f"|[{_SILENT}]")
_UPTO = re.compile(rf"(?<=[\w%℃]|{MASK})\s?~\s?(?=[\w]|{MASK})|~")
_HYPHEN_UPTO = re.compile(rf"(?<=[\u4e00-\u9fff%]|{MASK})\s?-\s?(?={MASK})")
_PER = re.compile(r"(?<=[元角分块克斤吨升米件个台次瓶人天时])/(?=[\u4e00-\u9fff])")
_STROKE = re.compile(r"/+")
_TIMES = re.compile(rf"(?<={MASK})\s?\*\s?(?={MASK})|\*+")


def _markup(match: re.Match[str], _: Scene) -> Span:
    name = match.group().strip("&;")
    return whole(match, _ENTITIES.get(name, ""), "markup")


def _topic(match: re.Match[str], scene: Scene) -> Span:
    return whole(match, "井号", "hashtag")


def _emoji(match: re.Match[str], scene: Scene) -> Span:
    if (
        scene.options.emoji == "skip"
        or match.group()[0] in "\u200d\u20e3"
        or "\ufe00" <= match.group()[0] <= "\ufe0f"
    ):
        return whole(match, "", "emoji")
    return whole(match, _EMOJI_NAMES.get(match.group()[0], "表情"), "emoji")


def _greek(match: re.Match[str], _: Scene) -> Span:
    return whole(match, _GREEK[match.group()], "math")


def _roman(match: re.Match[str], _: Scene) -> Span | None:
    if not match.group():
        return None
    total = 0
    before = 0
    for letter in reversed(match.group()):
        worth = {"I": 1, "V": 5, "X": 10}[letter]
        total += worth if worth >= before else -worth
        before = max(before, worth)
    return whole(match, cardinal(str(total)), "roman")


def _numeral(match: re.Match[str], _: Scene) -> Span | None:
    """A character that is a number by itself: ①, ½, Ⅳ, ㈢."""
    character = match.group()
    amount = unicodedata.numeric(character, None)
    if amount is None:
        return None
    kind = "roman" if "\u2160" <= character <= "\u2188" else "fraction" if amount % 1 else "cardinal"
    return whole(match, value(amount), kind)


def _square(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "平方" if match.group() == "²" else "立方", "math")


def _sign(match: re.Match[str], _: Scene) -> Span:
    return whole(match, _SIGNS.get(match.group(), ""), "math")


def _upto(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "到" if len(match.group()) > 1 or _inside(match) else "", "range")


def _inside(match: re.Match[str]) -> bool:
    return (
        match.start() > 0
        and match.end() < len(match.string)
        and bool(
            re.match(rf"[\w%℃{MASK}]", match.string[match.start() - 1])
            and re.match(rf"[\w{MASK}]", match.string[match.end()])
        )
    )


def _hyphen(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "到", "range")


def _per(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "每", "unit")


def _stroke(match: re.Match[str], _: Scene) -> Span:
    return whole(match, "、", "markup")


def _times(match: re.Match[str], _: Scene) -> Span:
    between = (
        match.start() > 0 and match.string[match.start() - 1 : match.start()] == MASK and "*" in match.group()
    )
    after = match.string[match.end() : match.end() + 1] == MASK
    return whole(match, "乘" if between and after else "", "math" if between and after else "markup")


MARKUP = (
    Rule(_TAG, _markup, "<"),
    Rule(_ENTITY, _markup, "&"),
    Rule(_EMPHASIS, _markup, "*_~`#-+>"),
    Rule(_EMOJI, _emoji),
)
ROMAN = (Rule(_ROMAN_WORD, _roman, "IVX"),)
RULES = (
    Rule(_SQUARE, _square, "²³"),
    Rule(_NUMERAL, _numeral),
    Rule(_HYPHEN_UPTO, _hyphen, "-"),
    Rule(_UPTO, _upto, "~"),
    Rule(_TOPIC, _topic, "#"),
    Rule(_TIMES, _times, "*"),
    Rule(_SIGN, _sign),
    Rule(_GREEK_LETTER, _greek),
    Rule(_PER, _per, "/"),
    Rule(_STROKE, _stroke, "/"),
)
