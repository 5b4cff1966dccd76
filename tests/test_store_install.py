"""Bundles come into the store from folders and archives, whole or not at all."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import zlib
from collections import namedtuple
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from edged import errors, store_install
from edged.bundle import Bundle
from edged.bundle_write import write_manifest
from edged.manifest import read_manifest
from edged.store import Store
from edged.store_files import new_folder, tree
from edged.store_install import install
from edged.store_names import folder_name


@pytest.fixture
def place(tmp_path: Path) -> Store:
    return Store(tmp_path / "bundles")


def archive(source: Path, out: Path, mode: str = "w:gz", inside: str = "tone") -> Path:
    with tarfile.open(out, mode) as tar:  # type: ignore[call-overload]
        tar.add(source, inside)
    return out


def nothing_in(place: Store) -> bool:
    return [p.name for p in place.directory.iterdir()] == [".store.lock"]


@pytest.mark.parametrize(("mode", "inside"), [("w", "tone"), ("w:gz", "."), ("w:xz", "x"), ("", "")])
def test_a_folder_or_an_archive(
    place: Store, tone_bundle: Path, tmp_path: Path, mode: str, inside: str
) -> None:
    source = archive(tone_bundle, tmp_path / "a.tar", mode, inside) if mode else tone_bundle
    path = install(place, source)
    assert path == place.directory / folder_name(tone_bundle)
    assert Bundle.load(path).manifest == Bundle.load(tone_bundle).manifest
    assert {p.stat().st_mode & 0o777 for p in path.rglob("*") if p.is_file()} == {0o644}
    assert path.stat().st_mode & 0o777 == 0o755
    assert install(place, source) == path, "once more is no error"
    assert {p.name for p in place.directory.iterdir()} == {".store.lock", path.name}


def test_the_service_can_read_it_whatever_the_umask_of_root(tone_bundle: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        place = Store(tmp_path / "new" / "bundles")
        path = install(place, tone_bundle)
    finally:
        os.umask(before)
    for inside in (place.directory, path, *path.rglob("*")):
        assert stat.S_IMODE(inside.stat().st_mode) == (0o755 if inside.is_dir() else 0o644), inside


def test_a_damaged_version_is_repaired_by_installing_it_again(place: Store, tone_bundle: Path) -> None:
    path = install(place, tone_bundle)
    engine = next((path / "engines").iterdir())
    engine.write_bytes(b"")
    assert install(place, tone_bundle) == path
    Bundle.load(path)


def test_a_damaged_bundle_is_not_installed(place: Store, tone_bundle: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tone_bundle, copy)
    engine = next((copy / "engines").iterdir())
    data = bytearray(engine.read_bytes())
    data[-1] ^= 1
    engine.write_bytes(data)
    for source in (copy, archive(copy, tmp_path / "a.tar.gz")):
        with pytest.raises(errors.BundleHashMismatch):
            install(place, source)
        assert nothing_in(place)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_that_was_cut_off(place: Store, tone_bundle: Path, tmp_path: Path, mode: str) -> None:
    whole = archive(tone_bundle, tmp_path / "a.tar", mode).read_bytes()
    for share in (0.3, 0.6, 0.9):
        cut = tmp_path / "cut.tar"
        cut.write_bytes(whole[: int(len(whole.rstrip(b"\0")) * share)])  # a tar file ends with zeros
        with pytest.raises(errors.BundleError):
            install(place, cut)
        assert nothing_in(place)


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "evil",
    [
        member("../outside"),
        member("tone/../../outside"),
        member("/tmp/outside-of-the-store"),
        member("tone/link", tarfile.SYMTYPE, "/etc/passwd"),
        member("tone/hard", tarfile.LNKTYPE, "../../x"),
        member("tone/pipe", tarfile.FIFOTYPE),
        member("tone/device", tarfile.CHRTYPE),
    ],
    ids=lambda info: info.name,
)
def test_an_archive_reaches_nothing_outside(
    place: Store, tone_bundle: Path, tmp_path: Path, evil: tarfile.TarInfo
) -> None:
    source = tmp_path / "a.tar"
    with tarfile.open(source, "w") as tar:
        tar.addfile(evil, io.BytesIO())
        tar.add(tone_bundle, "tone")
    with pytest.raises(errors.BundleError, match="no place"):
        install(place, source)
    assert nothing_in(place)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar", "bundles"]


def test_what_is_no_bundle(place: Store, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("hello")
    empty = archive(text, tmp_path / "empty.tar", "w")
    for source in (text, empty, tmp_path, tmp_path / "nowhere"):
        with pytest.raises(errors.BundleError) as caught:
            install(place, source)
        assert caught.value.hint
        assert nothing_in(place)


def test_a_disk_without_room(place: Store, tone_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(store_install.shutil, "disk_usage", lambda _: usage(0, 0, (16 << 20) + 100))
    with pytest.raises(errors.BundleError, match="room"):
        install(place, tone_bundle)
    assert nothing_in(place)


def test_a_store_that_cannot_be_written(tone_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.BundleError, match="file"):
        install(Store(tmp_path / "file" / "bundles"), tone_bundle)


# -- links in place of files ------------------------------------------------------------------------


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.mkdir()
    (path / "file").write_text("only for root")
    return path


def nowhere_below(folder: Path, text: str) -> bool:
    return all(text not in p.read_text(errors="replace") for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("kind", ["file", "folder", "pipe"])
@pytest.mark.parametrize("way", ["install", "switch"])
def test_links_in_a_bundle_lead_nowhere(
    place: Store, tone_bundle: Path, tmp_path: Path, secret: Path, kind: str, way: str
) -> None:
    new = install(place, tone_bundle).name
    copy = (place.directory if way == "switch" else tmp_path) / "tone"
    shutil.copytree(tone_bundle, copy)
    write_manifest(copy, msgspec.structs.replace(read_manifest(copy), version="mine"))
    if kind == "pipe":
        os.mkfifo(copy / "x")
    else:
        (copy / "x").symlink_to(secret / "file" if kind == "file" else secret)
    act = partial(place.switch, "tone", new) if way == "switch" else partial(install, place, copy)
    with pytest.raises(errors.BundleError, match="not a regular file"):
        act()
    (copy / "x").unlink(missing_ok=True)
    place.prune()
    assert nowhere_below(place.directory, "only for root")


def test_a_file_that_becomes_a_link_meanwhile(tmp_path: Path, secret: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "from" / name).mkdir(parents=True)
        (tmp_path / "from" / name / "file").write_text("")
    begun = tree(tmp_path / "from")
    while (found := next(begun))[1] is None:
        pass
    (other,) = {"a", "b"} - {found[0][0]}
    (tmp_path / "from" / other / "file").unlink()
    (tmp_path / "from" / other / "file").symlink_to(secret / "file")
    with pytest.raises(errors.BundleError, match="not a regular file"):
        list(begun)


def test_a_folder_that_becomes_a_link_meanwhile(tmp_path: Path, secret: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "from" / name).mkdir(parents=True)
        (tmp_path / "from" / name / "file").write_text("")
    begun = tree(tmp_path / "from")
    folders = [next(begun)[0][0] for _ in range(2)]
    last = tmp_path / "from" / folders[-1]
    shutil.rmtree(last)
    last.symlink_to(secret)
    names = [parts for parts, _ in begun]
    assert (folders[-1], "file") not in names


def test_what_is_made_stays_in_its_folder_when_a_link_takes_its_place(tmp_path: Path, secret: Path) -> None:
    with new_folder(tmp_path / "work") as made:
        (tmp_path / "work").rename(tmp_path / "moved")
        (tmp_path / "work").symlink_to(secret)
        made.add_folder(("data",))
        made.add_file(("data", "x"), io.BytesIO(b"content"), 100)
    assert (tmp_path / "moved" / "data" / "x").read_bytes() == b"content"
    assert [p.name for p in secret.iterdir()] == ["file"]


@pytest.mark.parametrize("target", ["file", "new"])
def test_a_link_in_place_of_the_lock_is_not_followed(place: Store, secret: Path, target: str) -> None:
    place.directory.mkdir()
    (place.directory / ".store.lock").symlink_to(secret / target)
    with pytest.raises(errors.BundleError, match=r"store.lock: not a regular file"):
        place.prune()
    assert [p.name for p in secret.iterdir()] == ["file"]


# -- archives that are no bundles -------------------------------------------------------------------


def packed(out: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> Path:
    with tarfile.open(out, mode) as tar:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out


def test_an_archive_with_deep_folders(place: Store, tmp_path: Path) -> None:
    source = packed(tmp_path / "a.tar", (member("/".join(["d"] * 1200)), b""))
    with pytest.raises(errors.BundleError, match="more than 8 deep"):
        install(place, source)
    assert nothing_in(place)
    folder = tmp_path / "folder"
    (folder / "/".join(["d"] * 9)).mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(errors.BundleError, match="more than 8 deep"):
        install(place, folder)
    assert nothing_in(place)


def test_remains_that_cannot_be_removed_stop_nobody(
    place: Store, tone_bundle: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    new = install(place, tone_bundle).name
    remains = place.directory / ".incoming.1.installing"
    deep = remains / "/".join(["d"] * 1200)
    subprocess.run(["mkdir", "-p", str(deep)], check=True)
    try:
        install(place, tone_bundle)
        place.switch("tone", new)
        assert place.current("tone") == new
        assert place.prune() == []
        assert not remains.exists() or f"{remains} is a remainder" in caplog.text
    finally:
        subprocess.run(["rm", "-rf", str(remains)], check=True)


def test_a_name_that_is_not_one_or_comes_twice(place: Store, tmp_path: Path) -> None:
    cases = [
        ("no place", [(member("."), b"x")]),
        ("no place", [(member("x" * 256), b"x")]),
        ("twice", [(member("a"), b"x"), (member("./a"), b"y")]),
        ("twice", [(member("a"), b"x"), (member("a/b"), b"y")]),
        ("twice", [(member("a/b"), b"x"), (member("a"), b"y")]),
        ("twice", [(member("a"), b"x"), (member("a", tarfile.DIRTYPE), b"")]),
    ]
    for told, members in cases:
        source = packed(tmp_path / "a.tar", *members)
        with pytest.raises(errors.BundleError, match=told):
            install(place, source)
        assert nothing_in(place)


def pax(**fields: bytes) -> bytes:
    """An archive whose only file has these extended fields, as they are."""
    body = b""
    for name, value in fields.items():
        rest = b" " + name.replace("_", ".").encode() + b"=" + value + b"\n"
        length = len(rest) + 1
        while len(str(length)) + len(rest) != length:
            length += 1
        body += str(length).encode() + rest
    header = member("pax", tarfile.XHDTYPE)
    header.size = len(body)
    padded = body + b"\0" * (-len(body) % 512)
    return header.tobuf() + padded + member("x").tobuf() + b"\0" * 1024


def flipped(data: bytes, places: Iterable[int]) -> bytes:
    changed = bytearray(data)
    for number in places:
        changed[number] ^= 0xFF
    return bytes(changed)


def test_malformed_archives_are_told_as_errors(place: Store, tone_bundle: Path, tmp_path: Path) -> None:
    sources = {
        "NUL in a name": pax(path=b"a\0b"),
        "no number": pax(GNU_sparse_map=b"1,x,3", GNU_sparse_size=b"3"),
        "no size": pax(size=b"12x"),
        "many headers": pax(path=b"x")[:1024] * 2000 + b"\0" * 1024,
    }
    large = packed(tmp_path / "large", (member("x"), os.urandom(1 << 20))).read_bytes()
    deflate = zlib.compressobj(wbits=31)
    begin = deflate.compress(large[: len(large) // 2]) + deflate.flush(zlib.Z_FULL_FLUSH)
    sources["deflated by nobody"] = begin + b"\7" * 1000  # there is no such type of block
    for mode in ("w:gz", "w:xz", "w:bz2"):
        whole = archive(tone_bundle, tmp_path / "whole", mode).read_bytes()
        for share in (0.1, 0.5, 0.9):
            begin = int((len(whole) - 8) * share)
            sources[f"{mode} damaged at {share}"] = flipped(whole, range(begin, begin + 8))
    for name, data in sources.items():
        (tmp_path / "a.tar").write_bytes(data)
        with pytest.raises(errors.BundleError) as caught:
            install(place, tmp_path / "a.tar")
        assert "free space" not in caught.value.hint, name
        assert nothing_in(place), name


MEASURED = """
import sys
from pathlib import Path
from edged.errors import BundleError
from edged.store import Store
from edged.store_files import new_folder, tree
from edged.store_install import install
try:
    install(Store(Path(sys.argv[1])), Path(sys.argv[2]))
except BundleError as error:
    lines = Path("/proc/self/status").read_text().splitlines()  # getrusage counts the memory before exec, too
    print(next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")), error)
"""


def huge_header(out: Path) -> None:
    header = member("pax", tarfile.XHDTYPE)
    header.size = 1_500_000_000
    with out.open("wb") as stream:
        stream.write(header.tobuf())
        stream.truncate(512 + header.size + 1024)


def many_members(out: Path) -> None:
    out.write_bytes(b"".join(member(f"tone/{n}").tobuf() for n in range(20_000)) + b"\0" * 1024)


@pytest.mark.parametrize("make", [huge_header, many_members])
def test_an_archive_gets_little_memory_and_time(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "a.tar")
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "bundles"), str(tmp_path / "a.tar")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    megabytes, told = done.stdout.split(" ", 1)
    assert int(megabytes) < 300
    assert "more than" in told
