"""YAML nodes to entries: every field checked, each problem with its line and column.

Used while a lexicon is loaded, on the thread that loads it; without state that outlives the call. Walks the
nodes that `yaml.compose` made, because nodes know their place and the text as it was written: a word `no` or
007 stays as it is. Neighbours: `read` calls it; it knows `entries`, `pattern` and the alphabets.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from edged.errors import Problem, did_you_mean
from edged.escape import printable
from edged.text.document import Alphabet, Language, Phonemes
from edged.text.fold import fold
from edged.text.lexicon import pattern as patterns
from edged.text.lexicon.entries import Entry, Place
from edged.text.phonemes.respell import checked

WORD_CHARS = 64
SAY_CHARS = 256
MOST_VOICES = 64
NAMES = ("word", "pattern", "case", "language", "say", "pinyin", "ipa", "voices")
_SAID = ("say", "pinyin", "ipa")
_LANGUAGES: dict[str, Language] = {"zh": "zh", "en": "en"}
_ALPHABETS: tuple[Alphabet, ...] = ("pinyin", "ipa")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff〇]")
_LETTER = re.compile(r"[^\W\d_]")
_INNER_CAPITAL = re.compile(r"(?<=\w)[A-Z]")
_REFERENCE = re.compile(r"\\(.?)")
_PLAIN_TAG = "tag:yaml.org,2002:"
_NULL = _PLAIN_TAG + "null"
_MERGE = "<<"
_VARIANT = "\ufe0f"  # asks for a sign to be shown in colours
_SHOWN = 40  # characters of a text that a message repeats

Report = Callable[[Problem], None]


class EntryReader:
    """Reads the entries of one file. seen: nodes that were read, so that a second use of one is noticed."""

    def __init__(self, file: str, report: Report) -> None:
        self._file = file
        self._tell = report
        self._seen: set[int] = set()
        self._faults = 0
        self._named = ""  # the word or pattern of the entry that is read

    def report(self, node: Node, key: str, message: str, hint: str = "") -> None:
        self._faults += 1
        mark = node.start_mark
        key = ": ".join(filter(None, (self._named, key)))
        self._tell(Problem(self._file, mark.line + 1, key, message, hint=hint, column=mark.column + 1))

    def entry(self, node: Node) -> Entry | None:
        """The entry of a node; None where something is wrong with it, which is reported."""
        self._faults = 0
        self._named = _name_of(node)
        try:
            return self._entry(node)
        finally:
            self._named = ""

    def _entry(self, node: Node) -> Entry | None:
        fields = self._fields(node)
        if fields is None:
            return None
        word = self._word(fields["word"]) if "word" in fields else ""
        pattern = self._pattern(fields["pattern"]) if "pattern" in fields else ""
        if ("word" in fields) == ("pattern" in fields):
            self.report(node, "", "expected one of word and pattern")
        written = word or pattern
        language = self._language(node, fields.get("language"), written)
        exact = self._exact(fields.get("case"), word)
        say, phonemes = self._said(node, fields, word, pattern, language)
        voices = self._voices(fields["voices"]) if "voices" in fields else ()
        if self._faults:
            return None
        place = Place(self._file, node.start_mark.line + 1, node.start_mark.column + 1)
        return Entry(word, pattern, exact, language, "language" in fields, say, phonemes, voices, place)

    def once(self, node: Node) -> bool:
        """Whether this node was not read before, under another name for it."""
        if id(node) in self._seen:
            self.report(node, "", "is used again under an alias", "write it out: aliases (*) are not taken")
            return False
        self._seen.add(id(node))
        return True

    def _fields(self, node: Node) -> dict[str, Node] | None:
        if not self.once(node):
            return None
        if not isinstance(node, MappingNode):
            self.report(node, "", "expected an entry such as: word: Nginx, and below it say: engine x")
            return None
        fields: dict[str, Node] = {}
        for name, value in node.value:
            key = _shown(name.value) if isinstance(name, ScalarNode) else ""
            if key in fields:
                line = fields[key].start_mark.line + 1
                self.report(name, key, f"is already there on line {line}", "delete one of the two lines")
            elif key == _MERGE:
                self.report(name, key, "merge keys are not taken", "write the fields out")
            elif key not in NAMES:
                hint = did_you_mean(key, NAMES) or f"known here: {', '.join(NAMES)}"
                self.report(name, key, "an entry has no such field", hint)
            elif self.once(value):
                fields[key] = value
        return fields

    def _text(self, node: Node, key: str, most: int) -> str:
        """A text as it was written, on one line; "" where it is none."""
        if not isinstance(node, ScalarNode):
            self.report(node, key, "expected a text")
        elif not node.tag.startswith(_PLAIN_TAG):
            self.report(node, key, f"expected a text without the tag {_shown(node.tag)}")
        elif not (text := " ".join(unicodedata.normalize("NFC", node.value).split())):
            hint = "quote what begins with #" if node.tag == _NULL else ""
            self.report(node, key, "expected a text, got nothing", hint)
        elif len(text) > most:
            self.report(node, key, f"expected at most {most} characters, got {len(text)}")
        elif not text.isprintable():
            self.report(node, key, "holds a character that cannot be seen")
        else:
            return text
        return ""

    def _choice(self, node: Node, key: str, known: tuple[str, ...]) -> str:
        text = self._text(node, key, _SHOWN)
        if text and text not in known:
            self.report(node, key, f"expected {' or '.join(known)}, got {_shown(text)}")
            return ""
        return text

    def _word(self, node: Node) -> str:
        text = fold(self._text(node, "word", WORD_CHARS))
        return text.replace(_VARIANT, "") or text  # texts have lost it where words are looked for

    def _pattern(self, node: Node) -> str:
        text = self._text(node, "pattern", patterns.LONGEST)
        if other := next((c for c in text if fold(c) != c), ""):
            self.report(node, "pattern", f"{other!r} is found in texts as {fold(other)!r}", "write that one")
            return ""
        try:
            if text:
                patterns.shape(text)
        except ValueError as error:
            self.report(node, "pattern", str(error))
            return ""
        return text

    def _exact(self, node: Node | None, word: str) -> bool:
        if node is None:
            return not word or bool(_INNER_CAPITAL.search(word))
        return self._choice(node, "case", ("exact", "any")) == "exact"

    def _language(self, entry: Node, node: Node | None, written: str) -> Language:
        if node is not None:
            return _LANGUAGES.get(self._choice(node, "language", ("zh", "en")), "en")
        if _HAN.search(written):
            return "zh"
        if written and not _LETTER.search(written):
            self.report(entry, "", "has no letter that shows its language", "add language: zh or en")
        return "en"

    def _said(
        self, entry: Node, fields: dict[str, Node], word: str, pattern: str, language: Language
    ) -> tuple[str, Phonemes | None]:
        given = [key for key in _SAID if key in fields]
        if len(given) != 1:
            got = " and ".join(given) or "none of them"
            self.report(entry, "", f"expected one of say, pinyin and ipa, got {got}")
            return "", None
        if given == ["say"]:
            return self._say(fields["say"], pattern, language), None
        alphabet = next(alphabet for alphabet in _ALPHABETS if alphabet in given)
        text = self._text(fields[alphabet], alphabet, SAY_CHARS)
        if not text:
            return "", None
        try:
            phonemes = checked(alphabet, text)
        except ValueError as error:
            self.report(fields[alphabet], alphabet, str(error))
            return "", None
        if alphabet == "pinyin" and word:
            self._check_count(fields[alphabet], word, len(phonemes.symbols.split()))
        return "", phonemes

    def _check_count(self, node: Node, word: str, syllables: int) -> None:
        characters = len(_HAN.findall(word))
        if characters != len(word):
            self.report(node, "pinyin", "is for words of Han characters only", "use say or ipa instead")
        elif characters != syllables:
            message = f"expected a syllable for each of {characters} characters, got {syllables}"
            self.report(node, "pinyin", message)

    def _say(self, node: Node, pattern: str, language: Language) -> str:
        text = self._text(node, "say", SAY_CHARS)
        if not text:
            return ""
        groups = patterns.shape(pattern).groups if pattern else 0
        for reference in _REFERENCE.finditer(text):
            number = reference[1]
            if not (number.isascii() and number.isdigit() and 1 <= int(number) <= groups):
                hint = "" if pattern else "groups are for patterns"
                self.report(node, "say", f"{reference[0]} is no group of the pattern", hint)
                return ""
        if language == "en" and _HAN.search(text):
            self.report(node, "say", "holds Han characters, but its language is en", "add language: zh")
        elif not any(c.isalnum() for c in text):
            self.report(node, "say", "has no sound: expected words")
        return text

    def _voices(self, node: Node) -> tuple[str, ...]:
        items = node.value if isinstance(node, SequenceNode) else [node]
        if len(items) > MOST_VOICES or not items:
            self.report(node, "voices", f"expected 1 to {MOST_VOICES} names of voices")
            return ()
        names = [self._text(item, "voices", WORD_CHARS) for item in items]
        return tuple(sorted(set(names)))


def _name_of(entry: Node) -> str:
    """What messages call an entry: its word or pattern as it is written, "" where it has none."""
    for key, value in entry.value if isinstance(entry, MappingNode) else ():
        if isinstance(key, ScalarNode) and key.value in ("word", "pattern") and isinstance(value, ScalarNode):
            return _shown(value.value)
    return ""


def _shown(text: str) -> str:
    """Text from the file, short and on one line."""
    return printable(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
