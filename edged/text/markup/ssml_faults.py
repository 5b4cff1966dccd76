"""What expat found wrong with an XML text, in plain words. Pure, any thread. Neighbour: `ssml`."""

from __future__ import annotations

import re
from xml.parsers.expat import ErrorString, errors

from edged.errors import BadMarkup
from edged.text.markup.place import bad_markup

_CODES = errors.codes
_INVALID = _CODES[errors.XML_ERROR_INVALID_TOKEN]
_ENDED = _CODES[errors.XML_ERROR_NO_ELEMENTS]
_MISMATCH = _CODES[errors.XML_ERROR_TAG_MISMATCH]
_ONE_SPEAK = "the whole text must stand in one <speak>"
_LONGEST_REFERENCE = 64
_BEGUN_REFERENCE = re.compile(r"&[#\w.:-]*\Z")
_PLAIN = {
    _CODES[errors.XML_ERROR_SYNTAX]: _ONE_SPEAK,
    _ENDED: _ONE_SPEAK,
    _CODES[errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]: "nothing may follow </speak>",
    _CODES[errors.XML_ERROR_UNCLOSED_TOKEN]: "a tag, comment or reference begins here and does not end",
    _CODES[errors.XML_ERROR_UNCLOSED_CDATA_SECTION]: "a CDATA section does not end",
    _CODES[errors.XML_ERROR_PARTIAL_CHAR]: "a character is not complete",
    _CODES[errors.XML_ERROR_DUPLICATE_ATTRIBUTE]: "the same attribute is given twice",
    _CODES[errors.XML_ERROR_UNDEFINED_ENTITY]: (
        "only the entities &amp; &lt; &gt; &quot; &apos; and character references such as &#160; are taken"
    ),
    _CODES[errors.XML_ERROR_BAD_CHAR_REF]: "this number is of no character that XML takes",
    _CODES[errors.XML_ERROR_UNBOUND_PREFIX]: "the prefix of an element or attribute is not declared",
    _CODES[errors.XML_ERROR_MISPLACED_XML_PI]: "<?xml ...?> may stand at the very beginning only",
}


def explained(text: str, at: int, code: int, unclosed: tuple[str, int] | None = None) -> BadMarkup:
    """The error for expat's `code` at the character `at`.

    unclosed: the innermost element that was open, and the character where it begins.
    """
    if code == _INVALID:
        return _invalid(text, at)
    if code == _ENDED and unclosed:
        return bad_markup(text, unclosed[1], f"<{unclosed[0]}> is not closed")
    if code == _MISMATCH and unclosed:
        return bad_markup(text, at, f"<{unclosed[0]}> must be closed first")
    what = _PLAIN.get(code, f"this is not well-formed XML: {ErrorString(code)}")
    return bad_markup(text, at, what)


def _invalid(text: str, at: int) -> BadMarkup:
    """A character that may not stand where it does: expat stops at it, or just behind an & or a <."""
    here, before = text[at : at + 1], text[max(at - _LONGEST_REFERENCE, 0) : at]
    if reference := _BEGUN_REFERENCE.search(before):
        return bad_markup(text, at - len(reference[0]), "a plain & is written &amp;")
    if here == "<" or before.endswith("<"):
        return bad_markup(text, at - (here != "<"), "a plain < is written &lt;")
    if before.endswith("="):
        return bad_markup(text, at, "the value of an attribute stands in quotes")
    if here and (here < " " or here > "\ufffd"):
        what = f"the character U+{ord(here):04X} may not stand in XML"
        return bad_markup(text, at, what, "leave it out")
    return bad_markup(text, at, "this is not well-formed XML")
