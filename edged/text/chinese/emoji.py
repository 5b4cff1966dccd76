"""Emoji: left out, or named as in the Unicode CLDR where a machine's message may carry them. Pure.

Neighbours: `reader.py` puts this rule before all that read digits, because of the keycaps.
"""

from __future__ import annotations

import re

from edged.text.chinese.rule import Rule, Scene, whole
from edged.text.span import Span

_SELECTORS = "\ufe00-\ufe0f\u200d\u20e3\U000e0020-\U000e007f\U0001f3fb-\U0001f3ff"
_SELECTOR = re.compile(f"[{_SELECTORS}]")
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


def _emoji(match: re.Match[str], scene: Scene) -> Span:
    first = match.group()[0]
    named = scene.options.emoji == "name" and not _SELECTOR.match(first)
    return whole(match, _EMOJI_NAMES.get(first, "表情") if named else "", "emoji")


RULES = (Rule(_EMOJI, _emoji),)
