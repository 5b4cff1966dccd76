"""Sentences of a text, and how good a place after each of its characters is to cut.

Pure functions, linear in the text; any thread. Works on text that was put into words and on text as it is
written. Neighbours: `points` knows which points end a sentence; `blocks` cuts a text before it is read, and
ids to the length that a voice takes; `prepare` and frontends ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from edged.text.points import is_end

Ending = Literal["sentence", "ellipsis", "question", "exclamation", "line", "paragraph", ""]

SENTENCE, CLAUSE, WORD, INSIDE = 3, 2, 1, 0  # how good a place is

_EAST_ASIAN = "\u2e80"  # from here on scripts put no spaces between words
_NEWLINE = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LINE = re.compile(rf"\S[^{_NEWLINE}]*")
_NEWLINES = re.compile(rf"\r\n|[{_NEWLINE}]")
_STRONG = "。｡！？；‼⁇⁈⁉"  # these end a sentence whatever follows
_QUESTIONS = "?？⁇⁈⁉"
_EXCLAMATIONS = "!！‼"
_DOTS = "…‥⋯"
_MARK = r"[.．!?…‥⋯。｡！？；‼⁇⁈⁉]"
_CLOSER = r"[”’»›)\]}」』》〉】〕〗〙〛）］｝｣]"
_MARKS = re.compile(rf"(?:\.(?: \.){{2,}}|{_MARK})(?:{_MARK}|{_CLOSER}|\"(?!\w)|'(?!\w))*")
_CLOSERS = frozenset("”’»›)]}」』》〉】〕〗〙〛）］｝｣\"'")
_OPENERS = "\"'“‘«‹([{「『《〈【〔（［｛"
_BLANKS = re.compile(r"\s*")
_OPENED = re.compile(rf"[{re.escape(_OPENERS)}]*")
_CLAUSE_MARKS = ",;:，、："
_ADDRESS = 24  # characters looked at around a mark that may be a part of an address or of a formula
_SIGN_BEFORE = re.compile(r"[/=&\\@#_<>][!-~]*\Z")
_SIGN_BEHIND = re.compile(rf"[!-~]{{0,{_ADDRESS}}}?[/=&\\@#_<>]")
_ITEM_SEEN = 5
_ITEM = re.compile(r"(?<!\S)\d{1,3}\Z")  # 1.检查 2.复位: the number of an item, which the point belongs to
_GOES_ON = "的地得之"  # what such a word stands behind is a part of a sentence

# A mark that parts clauses, with what closes behind it, before a blank or an East Asian character.
_CLAUSE = re.compile(
    rf"(?:(?<=\s)-(?=\s)|[,;:–](?=[\s\u2e80-\uffff]|[”’\"')\]])|[，、；：—])(?:[，、；：—]|{_CLOSER}|[\"'](?!\w))*"
)
_HAN = r"\u2e80-\u2fff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_NUMERALS = "零〇一二三四五六七八九十百千万亿两点"
# A place before a blank, or between characters of which one is East Asian: not inside a number, and no mark
# is parted from the word that it belongs to.
_BETWEEN = re.compile(
    rf"\S(?=\s)|\s|(?![\d第{_NUMERALS}][{_NUMERALS}])"
    rf"(?:[{_HAN}”’）》」』】〉〕](?=[{_HAN}A-Za-z“‘（《「『【〈〔])|[A-Za-z](?=[{_HAN}“‘（《「『【〈〔]))"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A stretch [start, end) of a text, without blanks around it.

    ending: what it ends with: "paragraph" before a blank line, whatever its mark; else its mark; else "line"
    before another line; "" where the text ends without a mark.
    """

    start: int
    end: int
    ending: Ending


@dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds of silence that are added behind an utterance, at speed 1.

    A voice has learned the pause at the end of a sentence and speaks it; nothing is added there. What no
    voice knows of is added: that a thought was left open, that a new line or a new paragraph begins.
    """

    sentence: float = 0.0
    question: float = 0.0
    exclamation: float = 0.0
    ellipsis: float = 0.2
    line: float = 0.15
    paragraph: float = 0.3

    def after(self, ending: Ending) -> float:
        """Seconds behind a sentence of this ending; none where the text just ends."""
        match ending:
            case "sentence":
                return self.sentence
            case "question":
                return self.question
            case "exclamation":
                return self.exclamation
            case "ellipsis":
                return self.ellipsis
            case "line":
                return self.line
            case "paragraph":
                return self.paragraph
            case "":
                return 0.0


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences in their order; only blanks are left out between them.

    A line is at least one sentence. Marks without a word belong to the sentence beside them in the line.
    Blank lines at the end of the text count: another text may follow.
    """
    lines = _LINE.finditer(text)
    line = next(lines, None)
    while line is not None:
        following = next(lines, None)
        gap = _gap(text, line.end(), following.start() if following else len(text))
        held: Sentence | None = None
        for sentence in _of_line(text, line.start(), line.start() + len(line.group().rstrip())):
            if held is not None:
                yield held
            held = sentence
        if held is not None:
            ending = "paragraph" if gap == "paragraph" else held.ending or gap
            yield Sentence(held.start, held.end, ending)
        line = following


def _gap(text: str, start: int, end: int) -> Ending:
    newlines = _NEWLINES.findall(text, start, end)
    if len(newlines) > 1 or any(c in "\f\u2029" for c in newlines):
        return "paragraph"
    return "line" if newlines else ""


def _of_line(text: str, start: int, stop: int) -> Iterator[Sentence]:
    """Joins pieces without a word to the piece before, or to the one behind where there is none."""
    held: Sentence | None = None
    for piece in _pieces(text, start, stop):
        if held is None:
            held = piece
        elif not _has_word(text, piece):
            held = Sentence(held.start, piece.end, piece.ending or held.ending)
        elif not _has_word(text, held):
            held = Sentence(held.start, piece.end, piece.ending)
        else:
            yield held
            held = piece
    if held is not None:
        yield held


def _has_word(text: str, piece: Sentence) -> bool:
    return any(map(str.isalnum, text[piece.start : piece.end]))


def _pieces(text: str, start: int, stop: int) -> Iterator[Sentence]:
    counted, quotes = start, 0  # straight quotes so far in the line: an odd number leaves one open
    for match in _MARKS.finditer(text, start, stop):
        at, end = match.span()
        if at < start:
            continue
        quotes += text.count('"', counted, end)
        counted = end
        if end < stop and text[end] == '"' and quotes % 2:
            end += 1
        after = _skip(_BLANKS, text, end, stop)
        if after == stop:
            yield Sentence(start, end, _ending(match.group()))
            return
        if _ends(text, start, match, end, after):
            yield Sentence(start, end, _ending(match.group()))
            start = after
    if start < stop:
        yield Sentence(start, stop, "")


def _ending(marks: str) -> Ending:
    if any(c in marks for c in _QUESTIONS):
        return "question"
    if any(c in marks for c in _EXCLAMATIONS):
        return "exclamation"
    return "ellipsis" if any(c in marks for c in _DOTS) or marks.count(".") > 1 else "sentence"


def _ends(text: str, start: int, match: re.Match[str], end: int, after: int) -> bool:
    """Whether a sentence ends at `end`, with these marks; something follows in the line, from `after` on."""
    at, marks = match.start(), match.group()
    before = text[at - 1] if at > start else ""
    following = text[after]
    if following in _CLAUSE_MARKS or (before and before in _OPENERS):
        return False
    opened = _skip(_OPENED, text, after, len(text))
    strong = any(c in _STRONG for c in marks)
    if after == end and not strong and not _touches(text, start, at, opened, marks):
        return False
    closed = marks[-1] in _CLOSERS
    small = text[opened : opened + 1].islower()
    if closed and (small or following in _GOES_ON or marks[-1] in "》〉"):
        return False
    kind = _ending(marks)
    if kind == "ellipsis":
        return strong or not small
    return kind != "sentence" or strong or closed or is_end(text, start, at, after)


def _skip(pattern: re.Pattern[str], text: str, at: int, stop: int) -> int:
    """Where the stretch of these characters ends that begins here."""
    match = pattern.match(text, at, stop)
    return match.end() if match else at


def _touches(text: str, start: int, at: int, after: int, marks: str) -> bool:
    """Whether marks can end a sentence though no blank parts them from what follows from `after` on."""
    before = text[at - 1] if at > start else ""
    following = text[after : after + 2]
    if "．" in marks:
        return not following[:1].isdigit()
    if following[:1] >= _EAST_ASIAN:
        return not (marks == "." and _ITEM.search(text, max(start, at - _ITEM_SEEN), at))
    if marks[0] == ".":
        return False  # a file's name, a decimal
    if before >= _EAST_ASIAN or (marks[0] in _DOTS and following[:1].isupper()):
        return True
    if not (before.isalpha() and len(following) > 1 and following.istitle()):
        return False
    return not (_SIGN_BEFORE.search(text, max(start, at - _ADDRESS), at) or _SIGN_BEHIND.match(text, after))


def breaks(text: str) -> bytes:
    """How good a place after each character is to cut: `SENTENCE`, `CLAUSE`, `WORD` or `INSIDE`.

    As good as after a mark it is after the blanks behind it. Scripts without spaces have words whose ends
    are not seen here: between two of their characters a cut is as good as between words.
    """
    made = bytearray(len(text))
    for match in _BETWEEN.finditer(text):
        made[match.start()] = WORD
    for match in _CLAUSE.finditer(text):
        made[match.end() - 1] = CLAUSE
    for sentence in sentences(text):
        made[sentence.end - 1] = CLAUSE if text[sentence.end - 1] == "；" else SENTENCE
    for place in range(1, len(text)):
        if made[place] == WORD and made[place - 1] > WORD and text[place].isspace():
            made[place] = made[place - 1]
    return bytes(made)
