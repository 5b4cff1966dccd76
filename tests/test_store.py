"""The bundle store: versions, links, and what is left when a command is killed at any instant."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from edged import errors, store, store_lock
from edged.bundle import Bundle, find
from edged.bundle_write import write_manifest
from edged.manifest import read_manifest
from edged.store import Store
from edged.store_install import install
from tests import bundles

VERSIONS = ("1", "2", "3")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tone bundle in three versions."""
    made = {}
    for version in VERSIONS:
        path = made[version] = tmp_path_factory.mktemp("sources") / f"tone-{version}"
        shutil.copytree(bundles.tone(), path)
        write_manifest(path, msgspec.structs.replace(read_manifest(path), version=version))
    return made


@pytest.fixture
def full(tmp_path: Path, sources: dict[str, Path]) -> Store:
    """A store with all three versions; none in use."""
    made = Store(tmp_path / "bundles")
    for version in VERSIONS:
        install(made, sources[version])
    return made


def folder(place: Store, version: str) -> str:
    return next(v.path.name for v in place.versions("tone") if v.version == version)


def used(place: Store) -> str:
    """The version that a daemon would load now, every file of it checked."""
    path = find("tone", [place.directory]).resolve()
    assert path.parent == place.directory.resolve()
    return Bundle.load(path).manifest.version


def hidden(place: Store) -> set[str]:
    return {p.name for p in place.directory.iterdir() if p.name.startswith(".")}


def test_the_name_is_a_link_to_the_version_in_use_and_the_one_before_is_kept(full: Store) -> None:
    with pytest.raises(errors.BundleMissing):
        find("tone", [full.directory])
    one, two, three = (folder(full, v) for v in VERSIONS)
    assert full.switch("tone", one) == ""
    assert (used(full), full.previous("tone")) == ("1", "")
    assert full.switch("tone", two) == one
    assert (used(full), full.previous("tone")) == ("2", one)
    assert full.switch("tone", three) == two
    assert (used(full), full.previous("tone")) == ("3", two)
    assert full.switch("tone", full.previous("tone")) == three, "rolling back is a switch, too"
    assert (used(full), full.previous("tone")) == ("2", three)
    assert [v.role for v in full.versions() if v.version == "1"] == [""]


def test_switching_to_the_one_in_use_keeps_the_one_before(full: Store) -> None:
    one, two, _ = (folder(full, v) for v in VERSIONS)
    full.switch("tone", one)
    full.switch("tone", two)
    assert full.switch("tone", two) == two
    assert full.previous("tone") == one


def test_a_switch_to_what_is_not_there_changes_nothing(full: Store) -> None:
    full.switch("tone", folder(full, "1"))
    with pytest.raises(errors.BundleMissing):
        full.switch("tone", "tone-9-000000000000")
    assert used(full) == "1"


@pytest.mark.parametrize("exchange", [True, False])
def test_a_bundle_built_in_place_becomes_a_version(
    full: Store, sources: dict[str, Path], monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(store, "exchange", lambda *_: False)
    shutil.rmtree(full.directory / folder(full, "1"))
    shutil.copytree(sources["1"], full.directory / "tone")
    for path in (full.directory / "tone").rglob("*.*"):
        path.chmod(0o600)  # the service made it for itself
    assert used(full) == "1"
    full.switch("tone", folder(full, "2"))
    assert (used(full), full.previous("tone")) == ("2", folder(full, "1"))
    adopted = full.directory / folder(full, "1")
    assert all(path.stat().st_mode & 0o004 for path in adopted.rglob("*")), (
        "whoever the service runs as reads it"
    )
    assert {path.stat().st_nlink for path in adopted.rglob("*") if path.is_file()} == {1}
    full.switch("tone", folder(full, "1"))
    assert used(full) == "1"
    assert hidden(full) == {".store.lock", ".tone.previous"}


def test_undo_restores_both_links(full: Store) -> None:
    one, two, three = (folder(full, v) for v in VERSIONS)
    full.switch("tone", one)
    full.undo("tone", "", "")
    with pytest.raises(errors.BundleMissing):
        find("tone", [full.directory])
    full.switch("tone", one)
    full.switch("tone", two)
    full.switch("tone", three)
    full.undo("tone", two, one)
    assert (used(full), full.previous("tone")) == ("2", one)


def test_the_way_back_leads_to_a_bundle_that_the_store_hides(
    full: Store, sources: dict[str, Path], tmp_path: Path
) -> None:
    one, two = folder(full, "1"), folder(full, "2")
    later = tmp_path / "later"
    shutil.copytree(sources["3"], later / "tone")
    places = [full.directory, later]
    assert full.before("tone", places) is None, "it is what is in use"
    full.switch("tone", one)
    assert full.before("tone", places) == later / "tone"
    assert full.before("tone", [later, full.directory]) is None, "it comes first, and is in use"
    assert full.withdraw("tone") == one
    assert (full.current("tone"), full.previous("tone")) == ("", one)
    assert find("tone", places) == later / "tone"
    assert full.before("tone", places) == full.directory / one, "and forth"
    full.switch("tone", one)
    full.switch("tone", two)
    assert full.before("tone", places) == full.directory / one
    full.withdraw("tone")
    full.undo("tone", two, one)
    assert (used(full), full.previous("tone")) == ("2", one)


def test_prune_leaves_what_is_in_use_and_the_one_before(full: Store, sources: dict[str, Path]) -> None:
    one, two, three = (folder(full, v) for v in VERSIONS)
    full.switch("tone", one)
    full.switch("tone", two)
    assert full.prune(keep=1) == []
    assert full.prune(name="other") == []
    assert full.prune() == [three]
    assert {v.path.name for v in full.versions()} == {one, two}
    assert (used(full), full.previous("tone")) == ("2", one)


def test_a_version_is_chosen_by_name_where_that_is_clear(full: Store) -> None:
    one, two, three = (folder(full, v) for v in VERSIONS)
    with pytest.raises(errors.BundleMissing, match="several") as caught:
        full.choose("tone")
    assert all(name in caught.value.hint for name in (one, two, three))
    assert full.choose("tone-2").path.name == two
    assert full.choose(three).path.name == three
    full.switch("tone", one)
    full.switch("tone", two)
    assert full.choose("tone").path.name == three, "the only one that was never used"
    with pytest.raises(errors.BundleMissing, match="no version"):
        full.choose("violin")


def test_one_command_at_a_time(full: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_lock, "LOCK_S", 0.1)
    other = Store(full.directory)
    with full.locked():
        full.switch("tone", folder(full, "1"))  # several steps of one command
        with pytest.raises(errors.StoreBusy):
            other.prune()
    assert len(other.prune()) == 2


def test_a_reader_finds_a_whole_bundle_at_every_moment_of_many_switches(full: Store) -> None:
    names = [folder(full, v) for v in VERSIONS]
    full.switch("tone", names[0])
    stop, faults, looks = threading.Event(), [], 0

    def read() -> None:
        nonlocal looks
        while not stop.is_set():
            try:
                used(full)
                looks += 1
            except Exception as exc:
                faults.append(exc)
                return

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(30):
        full.switch("tone", names[(number + 1) % 3])
    stop.set()
    reader.join()
    assert not faults
    assert looks > 0


# -- killed ---------------------------------------------------------------------------------------

# Ends a process before a certain line of the store's code, without any cleaning up; then before a later one.
KILLED = """
import os, sys
from pathlib import Path
from edged import bundle_write, store, store_files, store_install
directory, source, action, pace = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
files = {m.__file__ for m in (store, store_files, store_install, bundle_write)}
place = store.Store(directory)
by = {v.version: v.path.name for v in place.versions("tone")}
lines = 0
def trace(frame, event, argument):
    global lines
    if frame.f_code.co_filename not in files:
        return None
    if event == "line":
        lines += 1
        if lines == number:
            os._exit(9)
    return trace
for number in range(1, 1_000_000, pace):
    child = os.fork()
    if not child:
        sys.settrace(trace)
        if action == "install":
            store_install.install(place, source)
        elif action == "switch":
            place.switch("tone", by["2"])
        elif action == "undo":
            place.undo("tone", by["1"], "")
        elif action == "withdraw":
            place.withdraw("tone")
        elif action == "prune":
            place.prune()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(number, code, flush=True)
    sys.stdin.readline()
    if not code:
        break
"""


class Killer:
    """Runs an action of the store again and again, each time killed a bit later, until it gets through."""

    def __init__(self, place: Store, source: Path, action: str) -> None:
        pace = "1" if action == "switch" else "3"
        command = [sys.executable, "-c", KILLED, str(place.directory), str(source), action, pace]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin
        assert self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout

    def killed(self) -> bool:
        """Whether the action was killed this time; the next `killed` runs it again."""
        return int(self._out.readline().split()[1]) == 9

    def again(self) -> None:
        self._in.write("\n")
        self._in.flush()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()


@pytest.mark.parametrize(
    ("action", "start"),
    [
        ("switch", "link"),
        ("switch", "in place"),
        ("undo", "link"),
        ("withdraw", "link"),
        ("prune", "link"),
        ("install", "link"),
        ("install", "in place"),
    ],
)
def test_killed_before_any_line_it_leaves_a_store_that_works(
    full: Store, sources: dict[str, Path], tmp_path: Path, action: str, start: str
) -> None:
    one, two = folder(full, "1"), folder(full, "2")
    if action == "prune":  # of the third
        full.switch("tone", two)
    if start == "link":
        full.switch("tone", one)
    else:
        shutil.copytree(sources["1"], full.directory / "tone")
    if action == "undo":
        full.switch("tone", two)
    if action == "install":
        shutil.rmtree(full.directory / two)
    template = tmp_path / "template"
    shutil.copytree(full.directory, template, symlinks=True)
    killer = Killer(full, sources["2"], action)
    times = 0
    try:
        while killer.killed():
            times += 1
            if action == "withdraw" and not full.current("tone"):
                assert full.previous("tone") == one
            else:
                assert used(full) in ("1", "2")
            assert full.previous("tone") in ("", one, two)
            # Whoever comes next finds nothing half done.
            if action == "install":
                assert install(full, sources["2"]).name == two
            full.switch("tone", two)
            assert (used(full), full.previous("tone")) in (("2", one), ("2", ""))
            assert hidden(full) <= {".store.lock", ".tone.previous"}
            shutil.rmtree(full.directory)
            shutil.copytree(template, full.directory, symlinks=True)
            killer.again()
    finally:
        killer.close()
    assert times > 10
    if action == "withdraw":
        assert (full.current("tone"), full.previous("tone")) == ("", one)
    else:
        assert used(full) == {"switch": "2"}.get(action, "1")


def test_a_killed_process_does_not_keep_the_lock(full: Store) -> None:
    code = "import sys, time\nfrom edged.store import Store\nfrom pathlib import Path\n"
    code += "with Store(Path(sys.argv[1])).locked():\n  print('held', flush=True)\n  time.sleep(60)"
    arguments = [sys.executable, "-c", code, str(full.directory)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        os.kill(process.pid, 9)
        process.wait()
    full.switch("tone", folder(full, "1"))
    assert used(full) == "1"
