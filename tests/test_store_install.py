"""Bundles come into the store from folders and archives, whole or not at all."""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
from collections import namedtuple
from pathlib import Path

import pytest

from edged import errors, store_install
from edged.bundle import Bundle
from edged.store import Store
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
