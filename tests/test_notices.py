"""Codes of log lines: each has an entry in both catalogs, which journald reads; repeats are limited."""

from __future__ import annotations

import ast
import io
import logging
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged import log
from edged.errors import codes
from edged.notices import OTHER, Repeats, message_id
from edged.settings import Log

ROOT = Path(__file__).resolve().parent.parent
CATALOGS = {
    "en": (ROOT / "systemd" / "edged.catalog", ("For the user: ", "What to do: ", "See also: ")),
    "zh": (ROOT / "systemd" / "edged.zh_CN.catalog", ("对用户的影响：", "处理方法：", "另见：")),
}
LOUD = {"WARNING", "ERROR", "CRITICAL"}
PLAIN = {"warning", "error", "critical", "exception"}  # methods of a logger, which take no code


class Entry(NamedTuple):
    id: str
    subject: str
    text: str


def entries(path: Path) -> dict[str, Entry]:
    """By code, which stands in a comment above each entry."""
    found = {}
    for block in re.split(r"\n(?=# \w+\n-- )", path.read_text(encoding="utf-8"))[1:]:
        comment, begin, subject, owner, blank, *text = block.split("\n")
        assert (owner, blank) == ("Defined-By: edged", ""), block
        code = comment.removeprefix("# ")
        assert code not in found
        found[code] = Entry(begin.removeprefix("-- "), subject.removeprefix("Subject: "), "\n".join(text))
    return found


def logged() -> Iterator[tuple[str, ast.Call]]:
    """Every call in edged/ that may log from `warning` on, and where it is."""
    for path in sorted((ROOT / "edged").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            if name in ("log_event", "log.event") and len(node.args) > 1:
                level = ast.unparse(node.args[1]).removeprefix("logging.")
                if level in LOUD or not level.isupper():
                    yield place, node
            elif name.partition(".")[0] in ("log", "logger") and name.partition(".")[2] in PLAIN:
                yield place, node


def test_every_loud_line_has_a_code() -> None:
    calls = list(logged())
    assert len(calls) > 15
    without = [place for place, call in calls if not any(k.arg == "code" for k in call.keywords)]
    assert not without, "log these with edged.log.event and a code that both catalogs explain"


def test_every_code_can_be_found_here() -> None:
    """It is written out, or that of an error: one that is put together would escape the tests below."""
    for place, call in logged():
        [code] = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        for part in (code.body, code.orelse) if isinstance(code, ast.IfExp) else (code,):
            of_an_error = isinstance(part, ast.Attribute) and part.attr == "code"
            handed_on = isinstance(part, ast.Name) and part.id == "code"  # to a helper, as code="..."
            assert isinstance(part, ast.Constant) or of_an_error or handed_on, place


def own_codes() -> set[str]:
    """Codes that are written out: of calls, and of lines that are made by hand."""
    found = {OTHER}
    for path in (ROOT / "edged").rglob("*.py"):
        found |= set(re.findall(r'\bcode(?:=|": )"(\w+)"', path.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("language", CATALOGS)
def test_every_code_is_explained(language: str) -> None:
    path, parts = CATALOGS[language]
    known = entries(path)
    wanted = set(codes()) | own_codes()
    assert wanted - set(known) == set(), f"{path.name} has no entry for them"
    assert set(known) - wanted == set(), f"{path.name} explains what edged never logs"
    for code, entry in known.items():
        assert entry.id == message_id(code), f"{code}: the id must be {message_id(code)}"
        assert entry.subject
        assert entry.text.strip().partition("\n")[0], code
        for part in parts:
            assert len(re.findall(rf"^{part}\S", entry.text, re.MULTILINE)) == 1, f"{code}: {part}"


def test_both_languages_name_the_same_commands() -> None:
    english, chinese = (entries(path) for path, _ in CATALOGS.values())
    for code, entry in english.items():
        last = entry.text.strip().splitlines()[-1].removeprefix("See also: ")
        assert chinese[code].text.strip().splitlines()[-1] == f"另见：{last}"


def test_the_commands_of_the_catalog_exist() -> None:
    from edged.cli import cli

    for entry in entries(CATALOGS["en"][0]).values():
        first, *words = entry.text.strip().splitlines()[-1].removeprefix("See also: ").split()
        if first != "edged":
            continue
        command: click.Command = cli
        while isinstance(command, click.Group) and words:
            name = words.pop(0)
            assert name in command.commands, entry.subject
            command = command.commands[name]
        options = {"--help", *(option for parameter in command.params for option in parameter.opts)}
        assert {word for word in words if word.startswith("-")} <= options, entry.subject


def test_journald_reads_the_catalogs(tmp_path: Path) -> None:
    journalctl = shutil.which("journalctl")
    if journalctl is None:
        pytest.skip("journalctl is not installed")
    folder = tmp_path / "usr/lib/systemd/catalog"
    folder.mkdir(parents=True)
    (tmp_path / "var/lib/systemd/catalog").mkdir(parents=True)
    for path, _ in CATALOGS.values():
        shutil.copy(path, folder)
    call = [journalctl, f"--root={tmp_path}"]
    updated = subprocess.run([*call, "--update-catalog"], capture_output=True, text=True, check=True)
    assert updated.stderr == ""
    listed = subprocess.run([*call, "--list-catalog"], capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in listed.splitlines()} == {message_id(c) for c in codes()} | {
        message_id(c) for c in own_codes()
    }


# -- repeats ------------------------------------------------------------------------------------

KINDS = [("a.py", 1, "busy"), ("a.py", 1, "deadline"), ("b.py", 2, "busy")]


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.floats(0.0, 3.0)), max_size=200))
def test_what_is_left_out_is_counted(steps: list[tuple[tuple[str, int, str], float]]) -> None:
    repeats, now = Repeats(most=3, within_s=2.0), 100.0
    asked, said, told = len(steps), 0, 0
    times: dict[tuple[str, int, str], list[float]] = {kind: [] for kind in KINDS}
    for kind, later in steps:
        now += later
        told += sum(count for _, count in repeats.ended(now))
        if repeats.ask(kind, now):
            said += 1
            times[kind].append(now)
    told += sum(count for _, count in repeats.ended(now + 2.0))
    assert said + told == asked
    for moments in times.values():  # two windows may touch, three lines each
        assert all(sum(m <= t < m + 2.0 for t in moments) <= 6 for m in moments)


def test_a_storm_is_cut_and_its_size_told() -> None:
    stream, logger = io.StringIO(), logging.getLogger("edged.test")
    handler = log.setup(Log(format="text"), stream=stream)
    for _ in range(500):
        log.event(logger, logging.WARNING, "the loudspeaker is gone", code="no_audio_device")
        logger.info("a job is done")  # is never cut
    log.event(logger, logging.WARNING, "another matter", code="busy")
    logging.getLogger().removeHandler(handler)
    handler.close()
    text = stream.getvalue()
    assert text.count("a job is done") == 500
    assert text.count("another matter") == 1
    said = text.count("the loudspeaker is gone")
    (left_out,) = re.findall(r"(\d+) more lines of this kind .* code=no_audio_device", text)
    assert 1 < said < 100
    assert said + int(left_out) == 500
