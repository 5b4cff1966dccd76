"""Writes a tokenizer in the published layout: WordPiece with single Chinese characters and control tokens.

Tests and benchmarks only. Neighbour: `random_checkpoint.py`. The vocabulary is made here, not copied: it has
the published size and the published ids of the control tokens, and splits text much as the real one does.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from edged.compiler.chattts.layout import CONTROL_TOKENS

_BASE = ("[UNK]", "[CLS]", "[SEP]", "[MASK]")
_UNUSED = 99  # places that BERT vocabularies keep free after [PAD]; left out of small ones
_PUNCTUATION = "，。！？、；：“”‘’（）《》…—·"
_COMMON = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过"
    "发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本"
    "前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很"
    "最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度"
    "门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电"
    "数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马"
)
_WORDS = (
    *("the", "of", "and", "to", "in", "is", "it", "you", "that", "was", "for", "on", "are", "with"),
    *("this", "have", "from", "one", "word", "what", "all", "were", "we", "when", "your", "can"),
    *("said", "there", "use", "an", "each", "which", "she", "do", "how", "their", "if", "will"),
    *("hello", "world", "speech", "time", "good", "day", "morning", "please", "thank", "voice"),
    *("##ing", "##ed", "##er", "##s", "##ly", "##es", "##tion", "##al", "##ment", "##ness", "##th"),
)


def vocabulary(text_tokens: int) -> dict[str, int]:
    """Text pieces by id; the control tokens take the last ids and are not part of it."""
    size = text_tokens - len(CONTROL_TOKENS)
    unused = _UNUSED if size > 5000 else 0
    pieces = ["[PAD]", *(f"[unused{n + 1}]" for n in range(unused)), *_BASE]
    known = set(pieces)
    for piece in _pieces():
        if len(pieces) == size:
            break
        if piece not in known:
            known.add(piece)
            pieces.append(piece)
    if len(pieces) != size:
        raise ValueError(f"text_tokens {text_tokens}: the vocabulary has {len(pieces)} pieces, not {size}")
    return {piece: number for number, piece in enumerate(pieces)}


def _pieces() -> Iterator[str]:
    """Most useful first, so that a short vocabulary is a usable one."""
    letters = string.ascii_lowercase + string.digits
    yield from string.punctuation + letters
    yield from (f"##{letter}" for letter in letters)
    yield from _PUNCTUATION
    yield from _WORDS
    yield from _COMMON
    chinese = list(_gb2312())
    yield from chinese
    for length in (2, 3):
        for combination in product(string.ascii_lowercase, repeat=length):
            piece = "".join(combination)
            yield piece
            yield f"##{piece}"
            if length == 2 and chinese:
                yield f"##{chinese.pop(0)}"
    yield from (f"##{character}" for character in chinese)


def _gb2312() -> Iterator[str]:
    """The 6,763 Chinese characters of GB 2312, in the order of that standard."""
    for row, cell in product(range(0xB0, 0xF8), range(0xA1, 0xFF)):
        try:
            yield bytes((row, cell)).decode("gb2312")
        except UnicodeDecodeError:
            continue  # the last cells of level 1 are empty


def write_tokenizer(folder: Path, text_tokens: int) -> None:
    """The three JSON files; readable by the tokenizers package and by transformers' BertTokenizerFast."""
    vocab = vocabulary(text_tokens)
    first = len(vocab)
    special = {name: vocab[name] for name in ("[PAD]", *_BASE)}
    special |= {token: first + number for number, token in enumerate(CONTROL_TOKENS)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    _write(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [{"id": number, "content": token, **flags} for token, number in special.items()],
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": True,
                "strip_accents": None,
                "lowercase": True,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": _post_processor(vocab),
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": vocab,
            },
        },
    )
    names = {f"{name[1:-1].lower()}_token": name for name in ("[PAD]", *_BASE)}
    names_and_controls = {**names, "additional_special_tokens": list(CONTROL_TOKENS)}
    _write(folder / "special_tokens_map.json", names_and_controls)
    _write(
        folder / "tokenizer_config.json",
        {
            "added_tokens_decoder": {
                str(number): {"content": token, **flags} for token, number in special.items()
            },
            **names_and_controls,
            "clean_up_tokenization_spaces": True,
            "do_lower_case": True,
            "model_max_length": 1_000_000_000,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
            "tokenizer_class": "BertTokenizer",
        },
    )


def _post_processor(vocab: dict[str, int]) -> dict[str, Any]:
    """[CLS] text [SEP]; ChatTTS encodes without it."""

    def special(token: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": 0}}

    first = {"Sequence": {"id": "A", "type_id": 0}}
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    single = [special("[CLS]"), first, special("[SEP]")]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, *second],
        "special_tokens": {
            token: {"id": token, "ids": [vocab[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")
        },
    }


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
