"""Times of day, ratios and scores: what is written with a colon, or with a dash after a game."""

from __future__ import annotations

import re

from edged.text.english import words
from edged.text.english.rule import Reading, Rule, Say, rule
from edged.text.points import kept

_HALF = r"(?P<half{n}> ?(?:[AaPp]\.[Mm]\.?|[AaPp][Mm])(?![A-Za-z]))?"


def _clock(n: int) -> str:
    return (
        rf"(?P<h{n}>\d{{1,2}}):(?P<m{n}>[0-5]\d)(?::(?P<s{n}>[0-5]\d)(?P<f{n}>\.\d{{1,6}})?)?(?![\d:]|[.]\d)"
        + _HALF.format(n=n)
    )


def _time(match: re.Match[str], n: int, say: Say) -> str | None:
    hour, minute = int(match[f"h{n}"]), int(match[f"m{n}"])
    second, half = match[f"s{n}"], match[f"half{n}"]
    if hour > 24 or (half and not 1 <= hour <= 12):
        return None
    said = _hour_minute(hour, minute, bool(half), second is not None, say)
    if second is not None:
        count = say.number(str(int(second)) + (match[f"f{n}"] or ""))
        said += f" and {count} {'second' if count == 'one' else 'seconds'}"
    return said + _noon(half, match)


def _hour_minute(hour: int, minute: int, half: bool, seconds: bool, say: Say) -> str:
    said = say.cardinal(hour)
    if minute:
        return f"{said} {'oh ' if minute < 10 else ''}{say.cardinal(minute)}"
    if half and not seconds:
        return said
    if seconds:
        return f"{said} o'clock" if 1 <= hour <= 12 else f"{said} hundred hours"
    return f"{said} o'clock" if 1 <= hour <= 12 else f"{said} hundred"


def _noon(half: str | None, match: re.Match[str]) -> str:
    """A M or P M; the last point stays where it ends a sentence."""
    if not half:
        return ""
    said = " A M" if "a" in half.lower() else " P M"
    return said + (kept(match.string, match.end()) if half.endswith(".") else "")


def _zone(text: str | None, say: Say) -> str:
    if not text:
        return ""
    if text == "Z":
        return " U T C"
    hours, minutes = int(text[1:3]), int(text[-2:])
    said = f" U T C {'plus' if text[0] == '+' else 'minus'} {say.cardinal(hours)}"
    return said + (f" {say.cardinal(minutes)}" if minutes else "")


def _one(match: re.Match[str], say: Say) -> Reading | None:
    said = _time(match, 1, say)
    if said is None:
        return None
    return Reading("time", ("at " if match["at"] else "") + said + _zone(match["zone"], say))


def _french(match: re.Match[str], say: Say) -> Reading:
    """17h00."""
    return Reading("time", _hour_minute(int(match["h"]), int(match["m"]), False, False, say))


def _range(match: re.Match[str], say: Say) -> Reading | None:
    first, second = _time(match, 1, say), _time(match, 2, say)
    return Reading("range", f"{first} to {second}") if first and second else None


def _hour(match: re.Match[str], say: Say) -> Reading | None:
    hour = int(match["hour"])
    return Reading("time", say.cardinal(hour) + _noon(match["half1"], match)) if 1 <= hour <= 12 else None


def _hour_range(match: re.Match[str], say: Say) -> Reading | None:
    first, second = int(match["first"]), int(match["hour"])
    if not (1 <= first <= 12 and 1 <= second <= 12):
        return None
    return Reading("range", f"{say.cardinal(first)} to {say.cardinal(second)}{_noon(match['half1'], match)}")


def _half_range(match: re.Match[str], say: Say) -> Reading | None:
    """9am-5pm."""
    first, second = int(match["first"]), int(match["hour"])
    if not (1 <= first <= 12 and 1 <= second <= 12):
        return None
    half = " A M" if "a" in match["half1"].lower() else " P M"
    return Reading(
        "range", f"{say.cardinal(first)}{half} to {say.cardinal(second)}{_noon(match['half2'], match)}"
    )


def _military(match: re.Match[str], say: Say) -> Reading | None:
    hour, minute = match["it"][:2], match["it"][2:]
    if int(hour) > 24 or int(minute) > 59:
        return None
    first = f"zero {words.ONES[int(hour)]}" if int(hour) < 10 else say.cardinal(int(hour))
    if minute == "00":
        return Reading("time", f"{first} hundred")
    low = f"oh {words.ONES[int(minute)]}" if minute[0] == "0" else say.cardinal(int(minute))
    return Reading("time", f"{first} {low}")


def _passed(match: re.Match[str], say: Say) -> Reading:
    """Runtime 01:23:45 is no time of day."""
    return Reading("time", _spent(say, h=match["h"], m=match["m"], s=match["s"]))


def _span(match: re.Match[str], say: Say) -> Reading | None:
    """2h 30m, 3d 4h: two units and more of time; 12m alone is a length."""
    given = {name: match[name] for name in "dhms" if match[name]}
    return Reading("time", _spent(say, **given)) if len(given) > 1 else None


def _spent(say: Say, **counts: str) -> str:
    said = []
    for name, count in counts.items():
        figures = count.lstrip("0") or "0"
        figures = "0" + figures if figures[0] == "." else figures
        if figures != "0":
            said.append(f"{say.number(figures)} {_UNITS[name]}{'' if figures == '1' else 's'}")
    return " ".join(said) or "zero seconds"


def _ratio(match: re.Match[str], say: Say) -> Reading:
    if edition := _EDITION.fullmatch(match["it"]):
        return Reading("identifier", f"{say.number(edition[1])} colon {words.year(int(edition[2]))}")
    return Reading("ratio", " to ".join(say.number(part) for part in re.split(" ?: ?", match["it"])))


def _score(match: re.Match[str], say: Say) -> Reading:
    return Reading("score", " to ".join(say.number(part) for part in re.split("[-–:]", match["it"])))


_EDITION = re.compile(r"(\d{3,6}):((?:19|20)\d\d)")  # of a standard: ISO 9001:2015
_N = r"\d{1,9}(?:\.\d{1,9})?"
_UNITS = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
_PASSING = (
    "[Rr]un ?time|[Ee]lapsed|[Dd]uration|[Uu]ptime|[Dd]owntime|[Rr]emaining|[Cc]ountdown|[Tt]ook"
    "|[Tt]ime left|[Cc]ycle time"
)
_PASSED = r"(?P<h>\d{1,4}):(?P<m>[0-5]\d):(?P<s>[0-5]\d(?:\.\d{1,6})?)"
_RATIO_WORDS = (
    "[Rr]atio|[Ss]cale|[Aa]spect|[Mm]ix(?:ture|ing)?|[Gg]ear(?:ing)?|[Rr]eduction|[Oo]dds|[Dd]ilut(?:ion"
    "|e|ed)"
)
_GAME = (
    "[Ww]on|[Ll]ost|[Bb]eat(?: [A-Za-z]{1,20})?|[Ll]ead(?:s|ing)?|[Ss]core(?:d)?(?: is| was)?|[Tt]ied"
    "|[Dd]rew|[Vv]ictory|"
    "[Dd]efeat|[Ff]inal"
)

RULES: list[Rule] = [
    rule(rf"(?<!\w)(?:{_PASSING})(?: time)?(?: is| was| of)?:? ?(?P<it>{_PASSED})(?![\w:]|\.\d)", _passed),
    rule(rf"(?<![\w.,])(?<!\d:)(?P<it>{_PASSED})(?= (?:elapsed|remaining|left)\b)", _passed),
    rule(
        r"(?<![\w.,-])(?=\d{1,5} ?[dhm])(?:(?P<d>\d{1,5}) ?d(?:ays?)?(?=[ \d])(?: (?=\d))?)?(?:"
        r"(?P<h>\d{1,4}) ?h(?:rs?)?(?![A-Za-z])(?: (?=\d))?)?"
        r"(?:(?P<m>\d{1,4}) ?m(?:ins?)?(?![A-Za-z])(?: (?=\d))?)?(?:(?P<s>\d{1,4}(?:\.\d{1,3})?) ?s"
        r"(?:ecs?)?)?(?<! )(?!\w)",
        _span,
    ),
    rule(
        rf"(?<!\w)(?:{_RATIO_WORDS})(?: (?:is|of|was|at|to|by|the))?:? (?P<it>{_N}"
        rf"(?:(?: : |:){_N}){{1,3}})(?![\w:]|\.\d)",
        _ratio,
    ),
    rule(
        rf"(?<![\w.,])(?<!\d:)(?P<it>{_N}(?:(?: : |:){_N}){{1,3}})(?= (?:{_RATIO_WORDS}|gearbox)\b)", _ratio
    ),
    rule(rf"(?<!\w)(?:{_GAME}):? (?P<it>\d{{1,3}}[-–:]\d{{1,3}})(?![\w%:/-]|\.\d)", _score),
    rule(rf"(?<![\w.,])(?<!\d:){_clock(1)} ?(?:-|–|to) ?{_clock(2)}", _range),
    rule(
        rf"(?:(?<=\ufdd0)(?P<at>T)|(?<![\w.,])(?<!\d:)){_clock(1)}(?P<zone>Z(?!\w)|[+-]\d\d:?\d\d"
        rf"(?!\d))?(?:h(?!\w))?",
        _one,
    ),
    rule(r"(?<![\w.,])(?<!\d:)(?P<h>[01]?\d|2[0-4])h(?P<m>[0-5]\d)(?!\w)", _french),
    rule(
        rf"(?<![\w.,])(?<!\d:)(?P<first>\d{{1,2}}) ?[-–] ?(?P<hour>\d{{1,2}})"
        rf"(?= ?[AaPp]\.?[Mm]){_HALF.format(n=1)}",
        _hour_range,
    ),
    rule(
        rf"(?<![\w.,])(?<!\d:)(?P<first>\d{{1,2}}){_HALF.format(n=1)}(?<=[mM.]) ?[-–] ?"
        rf"(?P<hour>\d{{1,2}}){_HALF.format(n=2)}(?<=[mM.])",
        _half_range,
    ),
    rule(rf"(?<![\w.,])(?<!\d:)(?P<hour>\d{{1,2}})(?= ?[AaPp]\.?[Mm]){_HALF.format(n=1)}", _hour),
    rule(r"(?<![\w.,:-])(?P<it>[0]\d[0-5]\d)(?= ?(?:hours|hrs)\b)", _military),
    rule(r"(?<!\w)[Aa]t (?P<it>[0-2]\d[0-5]\d)(?= (?:hours|hrs)\b)", _military),
    rule(rf"(?<![\w.,])(?<!\d:)(?P<it>{_N}(?:(?: : |:){_N}){{1,3}})(?![\w:]|\.\d)", _ratio),
]
