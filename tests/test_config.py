"""edged/config.py and config_nodes.py on real files: what is accepted, and what is said about the rest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from msgspec.inspect import FloatType

from edged import config, config_nodes, words
from edged.controls import Languages, RunVoices, Sampling
from edged.errors import ConfigError, Problem
from edged.settings import ClientDefaults, Group, Settings, VoiceDefaults

ROOT = Path(__file__).resolve().parent.parent
LEAVES = [
    (group.name, setting)
    for group in msgspec.structs.fields(Settings)
    for setting in msgspec.structs.fields(group.type)
]
IDS = [f"{group}.{setting.name}" for group, setting in LEAVES]


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        config.parse(text, "edged.yaml")
    for problem in caught.value.problems:
        assert str(problem) in str(caught.value)
    return caught.value.problems


def only(text: str) -> Problem:
    found = problems(text)
    assert len(found) == 1, found
    return found[0]


# -- finding and opening ------------------------------------------------------------------------


@pytest.fixture
def system_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "etc" / "edged.yaml"
    monkeypatch.setattr(config, "SYSTEM_FILE", path)
    monkeypatch.delenv("EDGED_CONFIG", raising=False)
    return path


def test_find_prefers_option_then_environment_then_system(
    system_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config.find() is None
    system_file.parent.mkdir()
    assert config.find() is None
    system_file.write_text("")
    assert config.find() == system_file
    monkeypatch.setenv("EDGED_CONFIG", "/named/by/environment")
    assert config.find() == Path("/named/by/environment")
    assert config.find("/named/by/option") == Path("/named/by/option")
    monkeypatch.setenv("EDGED_CONFIG", "")
    assert config.find() == system_file


def test_find_does_not_ignore_a_system_file_it_may_not_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EDGED_CONFIG", raising=False)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)  # stat fails with ELOOP, for root too
    monkeypatch.setattr(config, "SYSTEM_FILE", loop / "edged.yaml")
    assert config.find() == loop / "edged.yaml"
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(config.find())


def test_no_file_and_empty_files_mean_the_defaults(tmp_path: Path) -> None:
    assert config.load(None) == Settings()
    path = tmp_path / "edged.yaml"
    for text in ("", "\n", "# only a comment\n", "---\n", "audio:\n", "audio: {}\nlisten: ~\n", "\ufeff"):
        path.write_text(text, encoding="utf-8")
        assert config.load(path) == Settings(), text


def test_load_reads_values(tmp_path: Path) -> None:
    path = tmp_path / "edged.yaml"
    path.write_text("audio: {latency_ms: 80, volume: 1}\nvoices:\n  bundles: [a, b]\n  default: ä\n")
    settings = config.load(path)
    assert (settings.audio.latency_ms, settings.audio.volume) == (80, 1.0)
    assert isinstance(settings.audio.volume, float)
    assert (settings.voices.bundles, settings.voices.default) == (["a", "b"], "ä")
    assert settings.limits == Settings().limits


def test_files_that_the_configuration_names_are_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "edged.yaml"
    file.write_text("reading: {lexicons: [words.yaml, sub/more.yaml, /etc/edged/all.yaml]}")
    expected = [f"{tmp_path}/words.yaml", f"{tmp_path}/sub/more.yaml", "/etc/edged/all.yaml"]
    assert config.load(file).reading.lexicons == expected
    assert config.load(Path(os.path.relpath(file))).reading.lexicons == expected


def test_a_missing_file_is_an_error_that_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing.yaml"
    monkeypatch.setenv("EDGED_CONFIG", str(missing))
    with pytest.raises(ConfigError) as caught:
        config.load(config.find())
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.message) == (str(missing), 0, "there is no such file")
    assert "EDGED_CONFIG" in problem.hint


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a directory") as caught:
        config.load(tmp_path)
    assert str(tmp_path / "edged.yaml") in caught.value.problems[0].hint
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(Path("zero\0byte"))
    path = tmp_path / "edged.yaml"
    path.write_bytes(b"#" * (config.LARGEST_FILE + 1))
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        config.load(path)
    path.write_bytes(b"audio:\n  device: \xff\n")
    with pytest.raises(ConfigError, match=re.escape(f"{path}:2: this line is not UTF-8")):
        config.load(path)


def test_a_file_without_read_permission(tmp_path: Path) -> None:
    path = tmp_path / "edged.yaml"
    path.write_text("")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # root may read everything
    try:
        with pytest.raises(ConfigError, match="may not be read by this user"):
            config.load(path)
    finally:
        os.seteuid(user)


# -- what is reported ---------------------------------------------------------------------------


def test_every_problem_is_reported_at_once_in_the_order_of_the_file() -> None:
    found = problems(
        "audoi: 1\n"
        "audio:\n"
        "  latency_ms: fast\n"
        "  volume: 9\n"
        "  volume: 1\n"
        "limits:\n"
        "  jobs: 0\n"
        "listen:\n"
        "  tcp: tcp://0.0.0.0:5555\n"
    )
    assert [(p.line, p.key) for p in found] == [
        (1, "audoi"),
        (3, "audio.latency_ms"),
        (4, "audio.volume"),
        (5, "audio.volume"),
        (7, "limits.jobs"),
        (9, "listen.tcp"),
        (9, "listen.tcp"),
    ]


def test_the_message_of_a_wrong_type() -> None:
    problem = only("audio:\n  latency_ms: fast\n")
    assert str(problem) == (
        "edged.yaml:2:15: audio.latency_ms: expected a whole number from 5 to 2000 (milliseconds), got 'fast'"
    )
    assert problem.expected == "a whole number from 5 to 2000 (milliseconds)"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("audio: {volume: '1'}", "a number from 0 to 4, got '1'", "remove the quotes"),
        ("audio: {volume: 0,5}", "there is no such setting", "known here"),  # a flow mapping of its own
        ("audio:\n  volume: 0,5", "got '0,5'", "the decimal sign is a point: 0.5"),
        ("audio: {volume: .nan}", "got .nan", ""),
        ("audio: {volume: -.inf}", "got -.inf", ""),
        ("audio: {volume: 1e999}", "got '1e999'", ""),
        ("audio: {volume: true}", "got true", ""),
        ("audio: {volume: [1]}", "got a list", ""),
        ("audio: {volume: {a: 1}}", "got a group of settings", ""),
        ("audio: {volume: }", "got nothing", "delete the line"),
        ("audio: {latency_ms: 60.5}", "a whole number", ""),
        ("audio: {latency_ms: 60 ms}", "got '60 ms'", "without a unit: 60"),
        ("audio: {latency_ms: 0100}", "got 0100", "without a leading 0"),
        ("audio: {latency_ms: 0x40}", "got 0x40", ""),
        ("audio: {latency_ms: 1:30}", "got", ""),
        ("audio: {latency_ms: 4}", "from 5 to 2000 (milliseconds), got 4", ""),
        ("audio: {latency_ms: 1__0}", "a whole number", ""),
        ("audio: {enabled: 1}", "expected true or false, got 1", ""),
        ("audio: {enabled: 'no'}", "expected true or false, got 'no'", "remove the quotes"),
        ("audio: {keep_open_s: soon}", "from 0 to 3600 (seconds)", ""),
        ("limits: {text_chars: 0}", "from 1 to 1000000 (characters)", ""),
        ("limits: {frame_kb: 0}", "from 1 to 65536 (kilobytes)", ""),
        ("log: {level: Debug}", "one of debug, info, warning, error, got 'Debug'", "did you mean 'debug'?"),
        ("log: {level: off}", "one of debug, info, warning, error, got off", ""),
        ("log: {level: }", "got nothing", "delete the line"),
        ("engine: {backend: tensorflow}", "the word onnxruntime", ""),
        ("voices: {bundles: hibari}", "a list, each item text that is not empty", "as a list: [hibari]"),
        ("voices: {bundles: }", "got nothing", "delete the line"),
        ("audio: {device: !!binary aGk=}", "expected text", "remove the tag !!binary"),
        ("audio: {device: !x hi}", "expected text", "remove the tag !x"),
        ("audio: 5", "written as 'name: value' lines (enabled, device,", ""),
        ("audio: [5]", "got a list", ""),
        ("- audio", "groups of settings written as 'name: value' lines (listen,", ""),
        ("just words", "got 'just words'", ""),
        ("audio: {latency: 5}", "there is no such setting", "did you mean 'latency_ms'?"),
        ("audoi: {}", "there is no such group", "did you mean 'audio'?"),
        ("latency_ms: 5", "there is no such group", "it belongs in the group 'audio'"),
        ("audio: {chunk_ms: 50}", "there is no such setting", "it belongs in the group 'stream'"),
        ("audio.latency_ms: 5", "there is no such group", "write 'audio:' and below it"),
        ("audio: {zzz: 5}", "there is no such setting", "known here: enabled, device"),
        ("audio: {<<: {volume: 1}}", "there is no such setting", "merge keys are not supported"),
        ("? [a]\n: b", "there is no such group", ""),
        ("audio: {}\naudio: {}", "is already set on line 1", "delete one"),
    ],
)
def test_messages(text: str, message: str, hint: str) -> None:
    problem = problems(text)[0]
    assert message in problem.message
    assert hint in problem.hint
    assert bool(hint) == bool(problem.hint) or problem.message.startswith("there is no such")


def test_each_item_of_a_list_has_its_own_problem() -> None:
    found = problems("voices:\n  bundles:\n    - a\n    - ''\n    - [b]\n    -\n    - 3\n")
    assert [(p.line, p.key) for p in found] == [
        (4, "voices.bundles[1]"),
        (5, "voices.bundles[2]"),
        (6, "voices.bundles[3]"),
    ]


def test_text_from_the_file_cannot_break_a_message_into_lines() -> None:
    found = problems('"a\\nb\\e[31m": 1\naudio: {volume: "x\\ny' + "z" * 100 + '"}\n')
    assert [str(p).count("\n") for p in found] == [0, 0]
    assert all(str(p).isprintable() and len(str(p)) < 250 for p in found)


@pytest.mark.parametrize(
    ("text", "line", "column", "hint"),
    [
        ("audio:\n\tvolume: 1\n", 2, 1, "spaces, not tabs"),
        ("audio:\n  device: a: b\n", 2, 12, "indentation"),
        ("audio:\n  device: 'open\n", 3, 1, "quote is not closed"),
        ("a: 1\n---\nb: 2\n", 2, 1, "'---'"),
        ("audio:\n  device: *x\n", 2, 11, "quote text"),
        ("audio: {volume: 1\n", 2, 1, ""),
        ("audio: \x07", 1, 0, ""),
        ('a: "\\UFFFFFFFF"', 0, 0, "wrong"),
        ("[" * 5000, 0, 0, "two levels"),
    ],
)
def test_yaml_errors_carry_line_and_column(text: str, line: int, column: int, hint: str) -> None:
    problem = only(text)
    assert (problem.line, problem.column) == (line, column)
    assert hint in problem.hint
    if column:
        assert str(problem).startswith(f"edged.yaml:{line}:{column}: this is not YAML: ")


# -- what YAML 1.1 would turn into something else -----------------------------------------------


@pytest.mark.parametrize("written", ["660", "0660", '"660"', '"0660"', "'660'", "0o660"])
def test_mode_keeps_the_digits_that_were_written(written: str) -> None:
    assert int(config.parse(f"listen: {{mode: {written}}}").listen.mode, 8) == 0o660


@pytest.mark.parametrize("written", ["888", "rw-rw----", "66", "02660", "1_0", "{}", "0x1b0"])
def test_wrong_modes(written: str) -> None:
    problem = only(f"listen: {{mode: {written}}}")
    assert "expected an access mode of three octal digits, such as 660" in problem.message


@pytest.mark.parametrize("word", ["no", "on", "1", "1.50", "2024-01-01", "0x10", "1:30", "1e3", "="])
def test_text_stays_as_written(word: str) -> None:
    assert config.parse(f"listen:\n  group: {word}\n").listen.group == word


@pytest.mark.parametrize(("word", "value"), [("yes", True), ("on", True), ("False", False), ("OFF", False)])
def test_words_for_true_and_false(word: str, value: bool) -> None:
    assert config.parse(f"engine: {{spinning: {word}}}").engine.spinning is value


@pytest.mark.parametrize(
    ("written", "value"), [("1_000", 1000), ("+60", 60), ("6e1", 60), ("60.0", 60), ("1500", 1500)]
)
def test_whole_numbers(written: str, value: int) -> None:
    read = config.parse(f"audio: {{latency_ms: {written}}}").audio.latency_ms
    assert read == value
    assert type(read) is int


def test_aliases_and_empty_text_work() -> None:
    text = "audio: &a\n  device: &name USB\nvoices: {default: *name, directory: }\nlisten: {group: ~}\n"
    settings = config.parse(text)
    assert (settings.audio.device, settings.voices.default) == ("USB", "USB")
    assert (settings.voices.directory, settings.listen.group) == ("", "")


# -- checks across settings ---------------------------------------------------------------------

KEYS = "curve_secret: /k/a.key_secret, curve_clients: /k/clients"


@pytest.mark.parametrize(
    "listen",
    [
        "endpoint: ipc:///run/edged/edged.sock",
        "endpoint: ipc:///" + "x" * 99,
        f"endpoint: ipc:///{'x' * 106}, events: ipc:///{'y' * 106}",
        f"tcp: 'tcp://*:5555', tcp_events: 'tcp://[::]:5556', {KEYS}",
    ],
)
def test_good_endpoints(listen: str) -> None:
    assert config.parse(f"listen: {{{listen}}}").listen != Settings().listen


@pytest.mark.parametrize(
    ("listen", "keys", "says"),
    [
        ("endpoint: /run/x.sock", ["endpoint"], "did you mean 'ipc:///run/x.sock'?"),
        ("endpoint: ipc://x.sock", ["endpoint"], "absolute path"),
        ("endpoint: 'ipc://@x'", ["endpoint"], "absolute path"),
        ("endpoint: ipc:///run/", ["endpoint"], "absolute path"),
        ("endpoint: tcp://0.0.0.0:5555", ["endpoint"], "for TCP use listen.tcp"),
        ("endpoint: http://x, events: udp://x", ["endpoint", "events"], "expected ipc://"),
        (f"endpoint: ipc:///{'ü' * 60}", ["endpoint"], "at most 107 bytes, got 121 bytes"),
        (f"endpoint: ipc:///{'x' * 104}", ["endpoint"], "shorten the path by 5 bytes"),
        (f"endpoint: ipc:///a, events: ipc:///{'y' * 107}", ["events"], "at most 107 bytes"),
        ("endpoint: ipc:///a, events: ipc:///a", ["events"], "same address as listen.endpoint"),
        (f"tcp: ipc:///a, {KEYS}", ["tcp"], "tcp://HOST:PORT"),
        (f"tcp: tcp://host, {KEYS}", ["tcp"], "tcp://HOST:PORT"),
        (f"tcp: 'tcp://host:0', {KEYS}", ["tcp"], "tcp://HOST:PORT"),
        (f"tcp: 'tcp://host:65536', {KEYS}", ["tcp"], "tcp://HOST:PORT"),
        (f"tcp: 'tcp://h:5', tcp_events: 'tcp://h:5', {KEYS}", ["tcp_events"], "same address as listen.tcp"),
        (f"tcp_events: 'tcp://h:5', {KEYS}", ["tcp_events"], "needs listen.tcp"),
        ("tcp: 'tcp://h:5'", ["tcp", "tcp"], "TCP is served only with keys"),
        ("tcp: 'tcp://h:5', curve_secret: /k", ["tcp"], "needs listen.curve_clients"),
        ("tcp: 'tcp://h:5', curve_clients: /k", ["tcp"], "needs listen.curve_secret"),
        ("tcp: 'tcp://h:5', curve_clients: /k, curve_secret: [x]", ["curve_secret"], "expected text"),
        ("endpoint: [x], events: ipc:///a", ["endpoint"], "expected text"),
    ],
)
def test_wrong_endpoints(listen: str, keys: list[str], says: str) -> None:
    found = problems(f"listen: {{{listen}}}")
    assert [p.key for p in found] == [f"listen.{key}" for key in keys]
    assert says in str(found[0])
    assert all(p.line == 1 for p in found)


def test_a_doubled_key_does_not_hide_a_wrong_value() -> None:
    found = problems("listen:\n  endpoint: ipc:///a\n  endpoint: /b\n")
    assert [(p.line, p.key) for p in found] == [(3, "listen.endpoint")] * 2


def test_infinity_is_refused_where_no_range_forbids_it() -> None:
    node = yaml.compose("1e999", Loader=yaml.SafeLoader)
    with pytest.raises(config_nodes.Wrong):
        config_nodes._number(FloatType(), node)


def test_a_secret_is_not_repeated() -> None:
    secret = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
    assert secret not in str(problems(f"listen: {{curve_secret: ['{secret}']}}")[0])


# -- the annotated file -------------------------------------------------------------------------


def template_nodes() -> dict[str, tuple[int, yaml.Node]]:
    """Dotted key -> (line index of the key, value node)."""
    found = {}
    root = yaml.compose(config.template(), Loader=yaml.SafeLoader)
    for group, settings in root.value:
        found[group.value] = (group.start_mark.line, settings)
        for name, value in settings.value:
            found[f"{group.value}.{name.value}"] = (name.start_mark.line, value)
    return found


def comment_above(line: int) -> str:
    lines = config.template().splitlines()
    first = line
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return " ".join(row.strip().lstrip("# ") for row in lines[first:line])


def test_the_template_is_the_defaults() -> None:
    assert config.parse(config.template()) == Settings()


def test_the_template_has_every_group_with_a_comment() -> None:
    nodes = template_nodes()
    for group in msgspec.structs.fields(Settings):
        assert len(comment_above(nodes[group.name][0])) > 10, group.name


@pytest.mark.parametrize(("group", "setting"), LEAVES, ids=IDS)
def test_the_template_explains_every_setting(group: str, setting: msgspec.structs.FieldInfo) -> None:
    line, node = template_nodes()[f"{group}.{setting.name}"]
    default = getattr(getattr(Settings(), group), setting.name)
    # Loading alone would not show a value of the wrong kind that happens to read the same.
    written: Any = yaml.SafeLoader("").construct_object(node, deep=True)
    assert written == default
    assert type(written) is type(default)
    comment = comment_above(line)
    assert len(comment) > 40
    expected = words.describe(setting.type, setting.name)
    if bounds := re.search(r"[\d.]+ to [\d.]+", expected):
        assert bounds[0] in comment
    unit = re.search(r"\((\w+)\)", expected)
    if unit:
        assert unit[1] in comment.lower()
    for choice in get_args(setting.type) if expected.startswith(("one of", "the word")) else ():
        assert re.search(rf"\b{choice}\b", comment)


def test_the_template_comes_from_an_installed_package(tmp_path: Path) -> None:
    (tmp_path / "edged" / "data").mkdir(parents=True)
    names = "__init__ config config_nodes controls escape paths settings words"
    for name in names.split():
        shutil.copy(ROOT / "edged" / f"{name}.py", tmp_path / "edged")
    shutil.copytree(ROOT / "edged" / "errors", tmp_path / "edged" / "errors")
    code = "from edged import config; print(config.template(), end='')"
    run = [sys.executable, "-c", code]
    missing = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert missing.returncode == 1
    assert "not part of this installation" in missing.stderr
    (tmp_path / "edged" / "data" / "edged.yaml").write_text("# as installed\n")
    there = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert there.stdout == "# as installed\n"
    assert '"config/edged.yaml" = "edged/data/edged.yaml"' in (ROOT / "pyproject.toml").read_text()


# -- anything at all ----------------------------------------------------------------------------

relaxed = hypothesis_settings(deadline=None)  # a busy machine is no fault
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.binary(max_size=3),
    st.dates(),
)
names = st.one_of(
    st.sampled_from([f.name for f in msgspec.structs.fields(Settings)]),
    st.sampled_from([s.name for _, s in LEAVES]),
    scalars,
)
structures = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5),
    max_leaves=12,
)


def outcome(read: Callable[[], Settings]) -> Settings | ConfigError:
    try:
        return read()
    except ConfigError as error:
        return error


def check(result: Settings | ConfigError) -> None:
    if isinstance(result, ConfigError):
        assert result.problems
        assert all(p.message and str(p) in str(result) for p in result.problems)
    else:  # what was accepted holds every bound of settings.py
        assert msgspec.convert(msgspec.to_builtins(result), Settings) == result


@relaxed
@given(structures)
def test_any_structure_is_read_or_reported(structure: object) -> None:
    text = yaml.safe_dump(structure, allow_unicode=True)
    check(outcome(lambda: config.parse(text)))


@relaxed
@given(
    st.one_of(
        st.text(), st.text(alphabet="ab:-[]{}#&*!|>'\"%@`,?\\ \n\t~<=.0123xUu_$"), st.text("audio: \n-")
    )
)
def test_any_text_is_read_or_reported(text: str) -> None:
    check(outcome(lambda: config.parse(text)))


@relaxed
@given(st.binary())
def test_any_bytes_are_read_or_reported(data: bytes) -> None:
    fd = os.memfd_create("config")
    os.write(fd, data)
    try:
        check(outcome(lambda: config.load(Path(f"/proc/self/fd/{fd}"))))
    finally:
        os.close(fd)


@relaxed
@given(st.sets(st.sampled_from(range(len(LEAVES))), min_size=1), st.integers(0, 5))
def test_all_wrong_settings_are_reported_at_once(wrong: set[int], unknown: int) -> None:
    """Each of a random choice of settings gets a value that none accepts: exactly these are named."""
    document: dict[str, dict[str, object]] = {}
    for index in wrong:
        group, setting = LEAVES[index]
        named = get_origin(setting.type) is dict
        document.setdefault(group, {})[setting.name] = [1] if named else {"wrong": 1}
    for index in range(unknown):
        document.setdefault("audio", {})[f"unknown{index}"] = 1
    expected = [IDS[index] for index in wrong] + [f"audio.unknown{index}" for index in range(unknown)]
    assert sorted(p.key for p in problems(yaml.safe_dump(document))) == sorted(expected)


def test_every_group_refuses_unknown_keys_by_type() -> None:
    for group in msgspec.structs.fields(Settings):
        assert issubclass(group.type, Group)
        assert only(f"{group.name}: {{nothing_like_it: 1}}").key == f"{group.name}.nothing_like_it"


def test_how_voices_speak_by_default() -> None:
    wanted = ("ada: {temperature: 0.5, break: 2, refine: yes}", "no: {speed: 1.5}", "b:")
    text = "\n    ".join(("voices:\n  defaults:", *wanted))
    assert config.parse(text).voices.defaults == {
        "ada": VoiceDefaults(temperature=0.5, break_=2, refine=True),
        "no": VoiceDefaults(speed=1.5),
        "b": VoiceDefaults(),
    }
    assert config.parse("voices: {defaults: }").voices.defaults == {}
    text = "voices: {defaults: {ada: {languages: {zh: {top_k: 3}, en: }, run_voices: {zh: bao}}}}"
    assert config.parse(text).voices.defaults["ada"] == VoiceDefaults(
        languages=Languages(zh=Sampling(top_k=3)), run_voices=RunVoices(zh="bao")
    )


@pytest.mark.parametrize(
    ("voice", "key", "says"),
    [
        ("{temperatur: 1}", "ada.temperatur", "did you mean 'temperature'?"),
        ("{temperature: 0}", "ada.temperature", "expected a number from 0.01 to 10, got 0"),
        ("{top_k: 1.5}", "ada.top_k", "expected a whole number from 1 to 1000"),
        ("{break: 8}", "ada.break", "expected a whole number from 0 to 7, got 8"),
        ("{break_: 1}", "ada.break_", "did you mean 'break'?"),
        ("{oral: }", "ada.oral", "delete the line to keep the default"),
        ("{refine: 3}", "ada.refine", "expected true or false"),
        ("{oral: 1, refine: false}", "ada.oral", "refine is false"),
        ("{nonsense: 1}", "ada.nonsense", "known here: speed, pitch, temperature"),
        ("{languages: {fr: {}}}", "ada.languages.fr", "known here: zh, en"),
        ("{languages: {zh: 1}}", "ada.languages.zh", "expected settings written as"),
        ("{languages: {zh: {top_k: 0}}}", "ada.languages.zh.top_k", "expected a whole number from 1 to 1000"),
        ("{run_voices: {zh: [a]}}", "ada.run_voices.zh", "expected text of at most 64 characters"),
        ("1", "ada", "expected settings written as"),
        ("{speed: 1}\n    ada: {}", "ada", "already set"),
    ],
)
def test_a_wrong_default_of_a_voice(voice: str, key: str, says: str) -> None:
    problem = only(f"voices:\n  defaults:\n    ada: {voice}\n")
    assert problem.key == f"voices.defaults.{key}"
    assert says in f"{problem.message} ({problem.hint})"
    assert problem.line


def test_how_clients_are_heard_by_default() -> None:
    entries = ("- {client: panel, uid: 1001, priority: important, expires_ms: 500}", "- replace: own", "-")
    text = "\n    ".join(("speech:\n  clients:", *entries))
    assert config.parse(text).speech.clients == [
        ClientDefaults(client="panel", uid=1001, priority="important", expires_ms=500),
        ClientDefaults(replace="own"),
        ClientDefaults(),
    ]


@pytest.mark.parametrize(
    ("entry", "key", "says"),
    [
        ("{client: ''}", "[1].client", "expected text that is not empty"),
        ("{prioritiy: text}", "[1].prioritiy", "did you mean 'priority'?"),
        ("{priority: urgent}", "[1].priority", "expected one of important, message, text"),
        ("{uid: -1}", "[1].uid", "expected a whole number from 0"),
        ("{uid: }", "[1].uid", "delete the line to keep the default"),
        ("{queue: first}", "[1].queue", "expected one of last, next, got 'first'"),
        ("{replace: all}", "[1].replace", "expected one of none, own"),
        ("{interrupt: 1}", "[1].interrupt", "expected true or false"),
        ("{expires_ms: 0}", "[1].expires_ms", "expected a whole number from 1 to 86400000 (milliseconds)"),
        ("{after_interrupt: stop}", "[1].after_interrupt", "expected one of resume, restart, drop"),
        ("{volume: 5}", "[1].volume", "expected a number from 0 to 4"),
        ("panel", "[1]", "expected settings written as"),
        ("[panel]", "[1]", "expected settings written as"),
    ],
)
def test_a_wrong_entry_of_a_client(entry: str, key: str, says: str) -> None:
    problem = only(f"speech:\n  clients:\n    - {{client: good}}\n    - {entry}\n")
    assert problem.key == f"speech.clients{key}"
    assert says in f"{problem.message} ({problem.hint})"
    assert problem.line == 4


def test_clients_are_a_list() -> None:
    for wrong in ("{client: panel}", "panel"):
        problem = only(f"speech: {{clients: {wrong}}}")
        assert "expected a list, each item a group of settings, got" in problem.message


def test_settings_that_contradict_each_other_are_found() -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse("limits:\n  text_chars: 1000000\nvoices:\n  bundles: []\n")
    found = {problem.key: problem for problem in caught.value.problems}
    assert set(found) == {"limits.text_chars", "voices.bundles"}
    assert (found["limits.text_chars"].line, found["voices.bundles"].line) == (2, 4)
    assert config.parse("limits:\n  text_chars: 1000000\n  frame_kb: 4000\n").limits.frame_kb == 4_000


@pytest.mark.parametrize(
    "good",
    [
        "prometheus: 127.0.0.1:9640",
        "prometheus: '[::1]:9640'",
        "prometheus: 'box:0'",
        "prometheus_file: /var/lib/node/edged.prom",
    ],
)
def test_where_prometheus_may_look(good: str) -> None:
    assert config.parse(f"stats: {{{good}}}").stats != Settings().stats


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ("prometheus: '9640'", "prometheus"),
        ("prometheus: 'http://box:9640'", "prometheus"),
        ("prometheus: '127.0.0.1:65536'", "prometheus"),
        ("prometheus: '::1:9640'", "prometheus"),
        ("prometheus_file: edged.prom", "prometheus_file"),
        ("prometheus_file: /var/lib/edged.txt", "prometheus_file"),
    ],
)
def test_where_prometheus_may_not_look(wrong: str, key: str) -> None:
    assert only(f"stats: {{{wrong}}}").key == f"stats.{key}"


def test_thousands_of_unknown_keys_are_counted_and_take_no_time(tmp_path: Path) -> None:
    text = "".join(f"latnecy_{n}: 1\n" for n in range(4000))
    begin = time.process_time()
    found = problems(text)
    assert time.process_time() - begin < 4.0  # of it PyYAML takes nearly all; with a hint for each it was 9
    assert len(found) == config_nodes.MOST_PROBLEMS + 1
    assert "and 3900 more problems" in str(found[-1])


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), Path("/dev/tty")):
        with pytest.raises(ConfigError):
            config.load(path)


def test_check_config_reads_a_pipe() -> None:
    command = f"{sys.executable} -m edged check-config <(echo 'audio: {{latency_ms: no}}')"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert "audio.latency_ms" in done.stdout
