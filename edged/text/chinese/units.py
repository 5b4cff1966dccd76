"""Unit symbols to Chinese names: GB 3100 and GB 3102, and the rules of 1984 for compound units.

A compound unit is named in the order of its symbol; a stroke is 每 and stands once; squares and cubes of
lengths are 平方 and 立方, other powers 二次方 and 三次方. Case matters: mW is 毫瓦, MW is 兆瓦. Letters that
are more often part of a name than a unit after a number (3C, 5G, 5S) are none here. Pure, linear: a symbol
has a bounded length. Neighbours: `quantities.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PREFIXES = {
    "T": "太",
    "G": "吉",
    "M": "兆",
    "k": "千",
    "h": "百",
    "d": "分",
    "c": "厘",
    "m": "毫",
    "μ": "微",
    "u": "微",
    "n": "纳",
    "p": "皮",
}
# Symbol: name, prefixes that occur with it.
_PREFIXED = {
    "m": ("米", "kdcmμunp"),
    "g": ("克", "kmμun"),
    "s": ("秒", "mμunp"),
    "L": ("升", "hdcmμu"),
    "l": ("升", "dcmμu"),
    "A": ("安", "kmμunp"),
    "V": ("伏", "Mkmμun"),
    "W": ("瓦", "TGMkmμun"),
    "Wp": ("峰瓦", "Mk"),
    "Hz": ("赫兹", "TGMkm"),
    "N": ("牛", "Mkmμu"),
    "Pa": ("帕", "GMkhmμu"),
    "J": ("焦", "GMkmμu"),
    "Ω": ("欧姆", "GMkmμu"),
    "F": ("法", "mμunp"),
    "H": ("亨", "mμun"),
    "T": ("特斯拉", "mμun"),
    "Wb": ("韦伯", "mμu"),
    "C": ("库仑", "kmμunp"),
    "S": ("西门子", "mμun"),
    "mol": ("摩尔", "kmμun"),
    "bar": ("巴", "mk"),
    "Wh": ("瓦时", "TGMkm"),
    "Ah": ("安时", "km"),
    "VA": ("伏安", "GMkm"),
    "var": ("乏", "GMk"),
    "eV": ("电子伏", "GMkm"),
    "cal": ("卡", "k"),
    "lm": ("流明", "k"),
    "lx": ("勒克斯", "k"),
    "cd": ("坎德拉", "m"),
    "Sv": ("希沃特", "mμu"),
    "Gy": ("戈瑞", "mμu"),
    "Bq": ("贝克勒尔", "GMk"),
    "bps": ("比特每秒", "TGMk"),
    "bit": ("比特", "GMk"),
    "rad": ("弧度", "m"),
    "t": ("吨", "Mk"),
    "pcs": ("个", ""),
    "B": ("字节", "TGMk"),
}
_NOT_ALONE = frozenset("FTCSB")  # 3F, 6T, 3C, 5S and 2B are floors, sizes and names
_PLAIN = {
    "min": "分钟",
    "h": "小时",
    "hr": "小时",
    "d": "天",
    "sec": "秒",
    "K": "开尔文",
    "°C": "摄氏度",
    "℃": "摄氏度",
    "°F": "华氏度",
    "℉": "华氏度",
    "°": "度",
    "′": "分",
    "″": "秒",
    "Ω": "欧姆",
    "KB": "千字节",
    "Kbps": "千比特每秒",
    "Mb": "兆比特",
    "Gb": "吉比特",
    "KiB": "千字节",
    "MiB": "兆字节",
    "GiB": "吉字节",
    "KV": "千伏",
    "KW": "千瓦",
    "KVA": "千伏安",
    "KWh": "千瓦时",
    "KPa": "千帕",
    "KHz": "千赫兹",
    "KN": "千牛",
    "Kg": "千克",
    "KG": "千克",
    "KM": "千米",
    "MM": "毫米",
    "CM": "厘米",
    "Mpa": "兆帕",
    "Kpa": "千帕",
    "kpa": "千帕",
    "hz": "赫兹",
    "HZ": "赫兹",
    "Khz": "千赫兹",
    "Mhz": "兆赫兹",
    "Ghz": "吉赫兹",
    "dB": "分贝",
    "dBm": "分贝毫瓦",
    "dBA": "A 计权分贝",
    "r": "转",
    "rpm": "转每分",
    "RPM": "转每分",
    "rps": "转每秒",
    "psi": "磅每平方英寸",
    "PSI": "磅每平方英寸",
    "kgf": "千克力",
    "atm": "标准大气压",
    "mmHg": "毫米汞柱",
    "Torr": "托",
    "ha": "公顷",
    "inch": "英寸",
    "ft": "英尺",
    "yd": "码",
    "mi": "英里",
    "lb": "磅",
    "lbs": "磅",
    "oz": "盎司",
    "gal": "加仑",
    "hp": "马力",
    "HP": "马力",
    "kn": "节",
    "mph": "英里每小时",
    "fps": "帧每秒",
    "FPS": "帧每秒",
    "px": "像素",
    "dpi": "D P I",
    "ppm": "P P M",
    "ppb": "P P B",
    "PPM": "P P M",
    "rH": "相对湿度",
    "VDC": "伏直流",
    "Vdc": "伏直流",
    "VAC": "伏交流",
    "Vac": "伏交流",
    "Nm": "牛米",
    "Å": "埃",
    "cc": "立方厘米",
    "sccm": "标准毫升每分",
    "m²": "平方米",
    "㎡": "平方米",
    "㎥": "立方米",
    "㎜": "毫米",
    "㎝": "厘米",
    "㎞": "千米",
    "㎎": "毫克",
    "㎏": "千克",
    "㏄": "立方厘米",
    "㎖": "毫升",
    "ℓ": "升",
    "㎢": "平方千米",
    "㎠": "平方厘米",
    "㎟": "平方毫米",
    "㎐": "赫兹",
    "㎑": "千赫兹",
    "㎒": "兆赫兹",
    "㎓": "吉赫兹",
    "㎩": "帕",
    "㎪": "千帕",
    "㎫": "兆帕",
    "㎃": "毫安",
    "㎷": "毫伏",
    "㎸": "千伏",
    "㎽": "毫瓦",
    "㎾": "千瓦",
    "㎿": "兆瓦",
    "㏀": "千欧姆",
    "㏁": "兆欧姆",
    "㎛": "微米",
    "㎚": "纳米",
    "㎲": "微秒",
    "㎳": "毫秒",
    "㎍": "微克",
    "㏈": "分贝",
}
_UNDER_A_STROKE = {"min": "分"}
_AFTER_ANOTHER = {"h": "时"}  # kW·h is 千瓦时
_LENGTHS = {prefix + "m" for prefix in ("", *"kdcmμun")}
_POWERS = {"²": 2, "2": 2, "^2": 2, "³": 3, "3": 3, "^3": 3, "⁴": 4, "^4": 4}
_NUMERALS = " 一二三四"
_LONGEST = max(map(len, _PLAIN))
_ATOM = re.compile(r"[A-Za-zμΩ°℃℉′″Å㎀-㏿ℓ]+")
_POWER = re.compile(r"[²³⁴]|\^[234]|[23](?!\d|\.\d|[A-Za-z])")
_JOINT = re.compile(r"[·⋅*.]|/\(?")
_ENDS = re.compile(r"[A-Za-z0-9]|\.\d")
_ATOMS_AT_MOST = 5


def _names() -> dict[str, str]:
    made = {
        prefix + symbol: _PREFIXES[prefix] + name
        for symbol, (name, prefixes) in _PREFIXED.items()
        for prefix in prefixes
    }
    made |= {symbol: name for symbol, (name, _) in _PREFIXED.items() if symbol not in _NOT_ALONE}
    return made | _PLAIN


_NAMES = _names()
_IN_COMPOUNDS = _NAMES | {symbol: _PREFIXED[symbol][0] for symbol in _NOT_ALONE}


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit that was read up to `end`."""

    end: int
    name: str


def read(view: str, start: int, spaced: bool) -> Unit | None:
    """The longest unit at `start`; None where none is or a word goes on. spaced: a blank stands before it."""
    end = start
    name = ""
    atoms = 0
    stroke = False
    best: Unit | None = None
    while atoms < _ATOMS_AT_MOST:
        letters = _ATOM.match(view, end, end + _LONGEST + 1)
        symbol = letters.group() if letters else ""
        known = _NAMES if not atoms else _IN_COMPOUNDS
        while symbol and symbol not in known:  # 5°C is one symbol, in 30°E the sign is
            symbol = symbol[:-1] if symbol[0] in "°′″℃℉" else ""
        if not symbol or (symbol == "K" and not atoms and not spaced):
            return best
        end += len(symbol)
        short = _UNDER_A_STROKE if stroke else _AFTER_ANOTHER if atoms else {}
        atom = short.get(symbol, known[symbol])
        power = _POWER.match(view, end)
        if power:
            end = power.end()
            atom = _raised(symbol, atom, _POWERS[power.group()])
        name += atom
        atoms += 1
        if not _ENDS.match(view, end) or symbol[-1] in "°′″℃℉":
            best = Unit(end, name)
        joint = _JOINT.match(view, end)
        if not joint or (stroke and joint.group()[0] == "/"):
            return best
        if joint.group()[0] == "/":
            stroke = True
            name += "每"
        end = joint.end()
        if joint.group() == "/(":
            return _bracketed(view, end, name) or best
    return best


def _bracketed(view: str, start: int, name: str) -> Unit | None:
    """The rest of W/(m·K)."""
    end = start
    for _ in range(_ATOMS_AT_MOST):
        letters = _ATOM.match(view, end, end + _LONGEST + 1)
        if not letters or letters.group() not in _IN_COMPOUNDS:
            return None
        end = letters.end()
        atom = _IN_COMPOUNDS[letters.group()]
        power = _POWER.match(view, end)
        if power:
            end = power.end()
            atom = _raised(letters.group(), atom, _POWERS[power.group()])
        name += atom
        if view.startswith(")", end):
            return Unit(end + 1, name)
        joint = _JOINT.match(view, end)
        if not joint or joint.group()[0] == "/":
            return None
        end = joint.end()
    return None


def _raised(symbol: str, name: str, power: int) -> str:
    if symbol in _LENGTHS and power in (2, 3):
        return ("平方" if power == 2 else "立方") + name
    return f"{_NUMERALS[power]}次方{name}"
