"""Bundles: every fault has its class and a hint, and writing is all or nothing."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edged import bundle as bundles_module
from edged import bundle_write, errors
from edged.bundle import FAMILIES, MANIFEST, Bundle, find, installed, read_manifest
from edged.bundle_write import building
from edged.engine.buffers import Arena
from edged.settings import Engine
from edged.voices import load
from tests import bundles


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(bundles.tone(), tmp_path / "tone")


def edit(path, change):
    manifest = json.loads((path / MANIFEST).read_text())
    change(manifest)
    (path / MANIFEST).write_text(json.dumps(manifest))


def test_a_good_bundle_loads():
    bundle = Bundle.load(bundles.tone())
    assert bundle.manifest.family == "tone"
    assert bundle.engine_path("tone").is_file()
    assert bundle.manifest.golden is not None
    with pytest.raises(errors.BundleManifestInvalid, match="no engine 'x'"):
        bundle.engine("x")
    with pytest.raises(errors.BundleManifestInvalid, match="no data file 'x'"):
        bundle.data_path("x")
    with pytest.raises(errors.BundleManifestInvalid, match="no limit 'x'"):
        bundle.limit("x")


def test_every_known_family_can_be_opened():
    assert set(FAMILIES) == set(load._FAMILIES)


def test_no_folder_and_no_manifest(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(errors.BundleMissing) as caught:
            Bundle.load(path)
        assert "edged bundle build" in caught.value.hint


ENGINE = "engines/tone.onnx"


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda p: (p / ENGINE).unlink(), errors.BundleFileMissing),
        (lambda p: shutil.rmtree(p / "engines"), errors.BundleFileMissing),
        (lambda p: ((p / ENGINE).unlink(), (p / ENGINE).mkdir()), errors.BundleError),
        (lambda p: os.truncate(p / ENGINE, 100), errors.BundleFileTruncated),
        (lambda p: os.truncate(p / ENGINE, 0), errors.BundleFileTruncated),
        (lambda p: (p / ENGINE).write_bytes(b"x" * 9999), errors.BundleHashMismatch),
        (lambda p: flip(p / ENGINE), errors.BundleHashMismatch),
    ],
)
def test_damaged_files(copy, damage, error):
    damage(copy)
    with pytest.raises(error, match="engines") as caught:
        Bundle.load(copy)
    assert caught.value.hint or error is errors.BundleError


def test_without_verify_the_content_is_not_read(copy):
    flip(copy / ENGINE)
    Bundle.load(copy, verify=False)
    os.truncate(copy / ENGINE, 5)
    with pytest.raises(errors.BundleFileTruncated):
        Bundle.load(copy, verify=False)


def setting(*keys):
    *path, last, value = keys

    def change(manifest):
        for key in path:
            manifest = manifest[key]
        manifest[last] = value

    return change


RECORD = msgspec.to_builtins(bundles.TENSORRT)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (setting("format", 2), errors.BundleTooNew),
        (setting("format", 0), errors.BundleManifestInvalid),
        (setting("format", "1"), errors.BundleManifestInvalid),
        (setting("family", "opera"), errors.BundleFamilyUnknown),
        (setting("backend", "opera"), errors.BundleBackendMismatch),
        (setting("backend", "tensorrt"), errors.BundleManifestInvalid),
        (setting("tensorrt", RECORD), errors.BundleManifestInvalid),
        (setting("sample_rate", 0), errors.BundleManifestInvalid),
        (setting("sample_rate", "24k"), errors.BundleManifestInvalid),
        (setting("sample_rate", 7_999), errors.BundleManifestInvalid),
        (setting("sample_rate", 48_001), errors.BundleManifestInvalid),
        (setting("limits", {}), errors.BundleManifestInvalid),
        (setting("limits", "max_symbols", 0), errors.BundleManifestInvalid),
        (setting("limits", "max_symbols", 161), errors.BundleManifestInvalid),
        (setting("limits", "max_frames", 2_561), errors.BundleManifestInvalid),
        (setting("limits", "other", 1 << 40), errors.BundleManifestInvalid),
        (setting("engines", 0, "outputs", 0, "shape", [1_000, 240]), errors.BundleManifestInvalid),
        (setting("engines", 0, "inputs", 1, "name", "surprise"), errors.BundleManifestInvalid),
        (setting("voices", []), errors.BundleManifestInvalid),
        (setting("surprise", 1), errors.BundleManifestInvalid),
        (setting("name", "../tone"), errors.BundleManifestInvalid),
        (setting("engines", 0, "sha256", "abc"), errors.BundleManifestInvalid),
        (setting("engines", 0, "bytes", -1), errors.BundleManifestInvalid),
        (setting("engines", 0, "file", "../../etc/passwd"), errors.BundleManifestInvalid),
        (setting("engines", 0, "file", "/etc/passwd"), errors.BundleManifestInvalid),
        (setting("engines", 0, "file", "engines/\0"), errors.BundleManifestInvalid),
        (setting("engines", 0, "inputs", 0, "shape", [0]), errors.BundleManifestInvalid),
        (setting("engines", 0, "inputs", 0, "shape", []), errors.BundleManifestInvalid),
        (setting("engines", 0, "inputs", 0, "shape", [1 << 40]), errors.BundleManifestInvalid),
        (setting("engines", 0, "inputs", 0, "dtype", "object"), errors.BundleManifestInvalid),
        (lambda m: m["engines"].append(m["engines"][0]), errors.BundleManifestInvalid),
        (lambda m: m.pop("licence"), errors.BundleManifestInvalid),
    ],
)
def test_faults_of_the_manifest(copy, change, error):
    edit(copy, change)
    with pytest.raises(error) as caught:
        Bundle.load(copy)
    assert caught.value.hint
    assert str(copy) in caught.value.message


# -- bundles for TensorRT ----------------------------------------------------------------------


@pytest.fixture
def planned(tmp_path):
    return bundles.for_tensorrt(bundles.tone(), tmp_path / "planned")


def test_a_bundle_for_tensorrt_is_read_like_any_other(planned):
    found = Bundle.load(planned)
    assert found.manifest.tensorrt == bundles.TENSORRT
    assert found.engine_path("tone").suffix == ".plan"


@pytest.mark.parametrize(
    "change",
    [
        setting("backend", "onnxruntime"),
        lambda manifest: manifest.pop("tensorrt"),
        setting("tensorrt", "version", "ten"),
        setting("tensorrt", "capability", "sm_87"),
        setting("tensorrt", "cuda", "12"),
        setting("tensorrt", "device_mb", -1),
        setting("tensorrt", "plugin", "absent"),
        setting("tensorrt", "surprise", 1),
    ],
)
def test_a_record_of_tensorrt_that_does_not_fit_is_refused(planned, change):
    edit(planned, change)
    with pytest.raises(errors.BundleManifestInvalid, match=r"tensorrt|plugin"):
        Bundle.load(planned)


def test_a_bundle_for_tensorrt_needs_a_plan(tmp_path, copy):
    edit(copy, lambda m: m.update(backend="tensorrt", tensorrt=RECORD))
    with pytest.raises(errors.BundleManifestInvalid, match="no plan"):
        Bundle.load(copy)


PLAN = "engines/tone.plan"


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda p: os.truncate(p / PLAN, 20), errors.BundleFileTruncated),
        (lambda p: flip(p / PLAN), errors.BundleHashMismatch),
        (lambda p: (p / PLAN).unlink(), errors.BundleFileMissing),
    ],
)
def test_a_damaged_plan_is_found_by_its_size_or_hash(planned, damage, error):
    damage(planned)
    with pytest.raises(error, match=r"tone\.plan"):
        Bundle.load(planned)


@pytest.mark.parametrize("content", [b"", (bundles.tone() / ENGINE).read_bytes()])
def test_a_plan_that_is_none_is_told_though_its_hash_is_right(tmp_path, content):
    planned = bundles.for_tensorrt(bundles.tone(), tmp_path / "planned", plan=content)
    with pytest.raises(errors.BundleNotAPlan, match=r"tone\.plan"):
        Bundle.load(planned, verify=False)


def test_what_a_bundle_does_not_have_is_not_written(copy):
    bundle_write.write_manifest(copy, read_manifest(copy))
    assert "tensorrt" not in json.loads((copy / MANIFEST).read_text())


@pytest.mark.parametrize(
    ("limit", "value", "tensor"),
    [("max_symbols", 321, "ids"), ("max_frames", 1_841, "index"), ("max_letters", 10_000, "chars")],
)
def test_limits_of_hibari_must_fit_its_tensors(tmp_path, limit, value, tensor):
    copy = shutil.copytree(bundles.hibari(), tmp_path / "hibari")
    Bundle.load(copy, verify=False)
    edit(copy, setting("limits", limit, value))
    with pytest.raises(errors.BundleManifestInvalid, match=f"the limit {limit} is {value}, .*{tensor}"):
        Bundle.load(copy)


def test_symbols_that_need_more_frames_than_there_are(copy):
    edit(copy, setting("limits", "max_frames", 100))
    bundle = Bundle.load(copy)
    with pytest.raises(errors.BundleManifestInvalid, match="needs more than 100 frames"):
        load.open_bundle(bundle, Engine(), Arena())


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("file", "error"),
    [(MANIFEST, errors.BundleManifestInvalid), (ENGINE, errors.BundleFileMissing)],
)
def test_a_pipe_is_refused_without_waiting_for_it(copy, file, error):
    (copy / file).unlink()
    os.mkfifo(copy / file)
    with pytest.raises(error, match="not a regular file"):
        Bundle.load(copy)


def test_a_newer_format_is_recognised_whatever_else_it_holds(copy):
    (copy / MANIFEST).write_text('{"format": 7, "voices": {"entirely": "different"}}')
    with pytest.raises(errors.BundleTooNew, match="format 7"):
        read_manifest(copy)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"{" * 100_000, b" " * (2 << 20)])
def test_a_manifest_that_is_no_manifest(copy, raw):
    (copy / MANIFEST).write_bytes(raw)
    with pytest.raises(errors.BundleError):
        read_manifest(copy)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(position=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_any_changed_byte_is_read_or_refused(tmp_path, position, byte):
    raw = bytearray((bundles.tone() / MANIFEST).read_bytes())
    raw[int(position * len(raw))] = byte
    (tmp_path / MANIFEST).write_bytes(raw)
    with contextlib.suppress(errors.BundleError):
        read_manifest(tmp_path)


def test_a_link_out_of_the_bundle_is_refused(copy, tmp_path):
    outside = tmp_path / "outside.onnx"
    shutil.move(copy / ENGINE, outside)
    (copy / ENGINE).symlink_to(outside)
    with pytest.raises(errors.BundleManifestInvalid, match="leads out"):
        Bundle.load(copy)


def test_a_bundle_reached_through_a_link_loads(tmp_path):
    (tmp_path / "link").symlink_to(bundles.tone())
    Bundle.load(tmp_path / "link")


def test_find_and_installed(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(bundles.tone(), first / "tone")
    shutil.copytree(bundles.tone(), second / "tone")
    shutil.copytree(bundles.tone(), second / "other")
    shutil.copytree(bundles.tone(), second / ".other.1.building")
    (second / "empty").mkdir()
    directories = [first, second, tmp_path / "absent"]
    assert list(installed(directories)) == [first / "tone", second / "other"]
    assert find("tone", directories) == first / "tone"
    assert find(str(second / "tone"), directories) == second / "tone"
    with pytest.raises(errors.BundleMissing, match=r"did you mean 'tone'\?"):
        find("tne", directories)
    with pytest.raises(errors.BundleMissing, match="no bundle there"):
        find(str(second / "empty"), directories)
    with pytest.raises(errors.BundleMissing, match="searched nowhere"):
        find("tone", [])


def test_a_failed_build_leaves_nothing(tmp_path):
    def fail():
        with building(tmp_path / "voice") as root:
            (root / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_bundle_error(tmp_path):
    def fail():
        with building(tmp_path / "voice"):
            raise OSError(28, "No space left on device")

    with pytest.raises(errors.BundleError, match="No space left") as caught:
        fail()
    assert "free space" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.BundleError), building(tmp_path / "file" / "voice"):
        pass


@pytest.mark.parametrize("exchange", [True, False])
def test_rebuilding_replaces_and_open_files_stay(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(bundle_write, "exchange", lambda *_: False)
    out = tmp_path / "voice"
    for content in ("old", "new"):
        if content == "new":
            opened = (out / "data").open()
        with building(out) as root:
            (root / MANIFEST).write_text("{}")
            (root / "data").write_text(content)
    with opened:
        assert opened.read() == "old"
    assert (out / "data").read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["voice"]


KILLED = """
import sys, time
from pathlib import Path
from edged.bundle_write import building
from edged.engine.buffers import Arena
from edged.settings import Engine
with building(Path(sys.argv[1])) as root:
    (root / "manifest.json").write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_killed_build_leaves_the_old_bundle_and_is_swept_later(copy):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(copy)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    remains = copy.with_name(f".tone.{process.pid}.building")
    assert remains.is_dir()
    with building(copy.with_name("unrelated")) as root:
        (root / MANIFEST).write_text("{}")
    assert remains.is_dir()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    Bundle.load(copy)
    assert list(installed([copy.parent])) == [copy, copy.with_name("unrelated")]
    with building(copy) as root:
        assert not remains.exists()
        (root / MANIFEST).write_text("{}")


def test_a_build_killed_between_two_renames_is_put_back(copy):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    copy.rename(copy.with_name(f".tone.{gone.pid}.old"))
    with pytest.raises(RuntimeError), building(copy):
        raise RuntimeError
    Bundle.load(copy)


def test_checking_15_mb_is_fast():
    path = bundles.hibari()
    Bundle.load(path)
    best = min(_seconds(lambda: Bundle.load(path)) for _ in range(5))
    size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
    assert size > 15e6
    # 50 ms with SHA instructions; a processor without them, or a busy one, may take longer.
    assert best < 0.25


def _seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def test_hashes_are_those_of_the_standard_tool(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(os.urandom(1_000_003))
    said = subprocess.run(["sha256sum", str(file)], capture_output=True, text=True, check=True)
    assert bundles_module.sha256(file) == said.stdout.split()[0]
