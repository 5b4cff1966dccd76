"""The scripts for a Jetson, with real environments and real pip, on a machine that stands in for one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drivers import driver

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "deploy" / "jetson"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def run(script: str, *arguments: object, code: int = 0, **env: str) -> str:
    """stdout, or stderr where it must fail."""
    done = subprocess.run(
        [str(SCRIPTS / script), *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "SYSTEM_PYTHON": sys.executable, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stderr if code else done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment of its own, as edged's is."""
    folder = tmp_path_factory.mktemp("environment") / "edged"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def said(python: Path, code: str) -> str:
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False, env={})
    return (done.stdout or done.stderr.splitlines()[-1]).strip()


def package(site: Path, name: str, version: str) -> None:
    (site / name).mkdir(parents=True, exist_ok=True)
    (site / name / "__init__.py").write_text(f"VERSION_TEXT = {version!r}\n")
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def wheel(folder: Path, name: str, version: str) -> None:
    folder.mkdir(exist_ok=True)
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{stem}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{stem}/__init__.py", f"VERSION_TEXT = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", tag)
        archive.writestr(f"{info}/RECORD", "")


# -- TensorRT of the system's Python ------------------------------------------------------------


VERSION = "from importlib import metadata; import tensorrt; print(metadata.version('tensorrt'))"


def test_tensorrt_of_the_system_becomes_visible_and_follows_an_upgrade(
    environment: Path, tmp_path: Path
) -> None:
    assert "No module named 'tensorrt'" in said(environment, VERSION)
    for version in ("10.3.0", "10.7.0"):
        site = tmp_path / version
        package(site, "tensorrt", version)
        for _ in range(2):  # again: nothing changes
            told = run("use-tensorrt.sh", environment, PYTHONPATH=str(site))
            assert f"TensorRT {version} is visible" in told
        assert said(environment, VERSION) == version
    links = [path.name for path in environment.parent.parent.glob("lib/*/site-packages/tensorrt*")]
    assert sorted(links) == ["tensorrt", "tensorrt-10.7.0.dist-info"]


def test_nothing_is_taken_away_where_it_cannot_be_replaced(environment: Path, tmp_path: Path) -> None:
    package(tmp_path / "site", "tensorrt", "10.9.0")
    (place,) = environment.parent.parent.glob("lib/*/site-packages")
    for link in place.glob("tensorrt*"):
        link.unlink()
    (place / "tensorrt").mkdir()
    former = place / "tensorrt-10.7.0.dist-info"
    former.symlink_to(tmp_path)
    try:
        told = run("use-tensorrt.sh", environment, code=1, PYTHONPATH=str(tmp_path / "site"))
        assert "is there already, and no link" in told
        assert former.is_symlink()
    finally:
        (place / "tensorrt").rmdir()
        former.unlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_who_may_not_write_is_told_to_use_sudo(environment: Path, tmp_path: Path) -> None:
    package(tmp_path / "site", "tensorrt", "10.9.0")
    (place,) = environment.parent.parent.glob("lib/*/site-packages")
    place.chmod(0o555)
    try:
        told = run("use-tensorrt.sh", environment, code=1, PYTHONPATH=str(tmp_path / "site"))
        assert f"sudo {SCRIPTS}/use-tensorrt.sh {environment}" in told
    finally:
        place.chmod(0o755)


def test_what_is_missing_is_told_with_the_command_for_it(environment: Path, tmp_path: Path) -> None:
    assert "there is no" in run("use-tensorrt.sh", tmp_path / "python", code=1)
    assert "sudo apt install tensorrt" in run("use-tensorrt.sh", environment, code=1)
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho 3.99\n")
    other.chmod(0o755)
    told = run("use-tensorrt.sh", other, code=1)
    assert f"Python 3.99, TensorRT is for {PYTHON}" in told


# -- pycuda -------------------------------------------------------------------------------------


def test_pycuda_is_installed_from_wheels_that_were_kept(environment: Path, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    names = ["pytools", "Mako", "MarkupSafe", "platformdirs", "typing-extensions", "siphash24"]
    for name, version in [("pycuda", "2025.1"), *((name, "1.0") for name in names)]:
        wheel(wheels, name, version)
    told = run("install-pycuda.sh", "--wheels", wheels, environment)
    assert "pycuda 2025.1 is installed" in told
    assert said(environment, "import pycuda; print(pycuda.VERSION_TEXT)") == "2025.1"


def test_without_nvcc_it_says_how_to_get_it(environment: Path, tmp_path: Path) -> None:
    told = run(
        "install-pycuda.sh", "--wheels", tmp_path / "none", environment, code=1, CUDA_ROOT=str(tmp_path)
    )
    assert f"there is no nvcc in {tmp_path}/bin" in told
    assert "cuda-toolkit" in told


def test_of_a_compilation_that_fails_the_last_lines_are_told(environment: Path, tmp_path: Path) -> None:
    nvcc, system = tmp_path / "bin" / "nvcc", tmp_path / "python"
    nvcc.parent.mkdir()
    (tmp_path / "Python.h").touch()
    nvcc.write_text("#!/bin/sh\n")
    system.write_text(
        f'#!/bin/sh\ncase "$*" in\n*"pip download"*) seq 1000 1060; exit 1 ;;\n'
        f'*\\"include\\"*) echo {tmp_path} ;;\n*) exec {sys.executable} "$@" ;;\nesac\n'
    )
    (nvcc.parent / "g++").write_text("#!/bin/sh\n")
    for file in (nvcc, nvcc.parent / "g++", system):
        file.chmod(0o755)
    path = f"{nvcc.parent}:{os.environ['PATH']}"
    env = {"CUDA_ROOT": str(tmp_path), "SYSTEM_PYTHON": str(system), "PATH": path}
    told = run("install-pycuda.sh", environment, code=1, **env)
    assert "1060\ninstall-pycuda: pycuda was not compiled" in told
    assert "1021" in told
    assert "1020" not in told


# -- building -----------------------------------------------------------------------------------


@pytest.fixture
def board(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment of a board with a driver and these packages; its commands write down their calls."""

    def make(*packages: str, **macros: object) -> dict[str, str]:
        driver(tmp_path, **macros).rename(tmp_path / "libcuda.so.1")
        site = tmp_path / "site"
        site.mkdir()
        for name in packages:
            package(site, name, "10.3.0")
        python = tmp_path / "python"
        lacks = "sys.modules['onnx'] = None; " if "broken" in packages else ""
        python.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -c "import sys; {lacks}$@"\n')
        python.chmod(0o755)
        commands = tmp_path / "bin"
        commands.mkdir()
        for name in ("edged", "jetson_clocks", "nvpmodel"):
            file = commands / name
            file.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/calls\necho /made\n')
            file.chmod(0o755)
        return {
            "EDGED": str(commands / "edged"),
            "EDGED_PYTHON": str(python),
            "PATH": f"{commands}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": str(tmp_path),
            "PYTHONPATH": f"{ROOT}:{site}",
            "TMPDIR": str(tmp_path),
        }

    return make


def calls(folder: Path) -> list[str]:
    file = folder / "calls"
    return file.read_text().splitlines() if file.exists() else []


def test_it_builds_with_what_it_was_given(board: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    env = board("tensorrt", "pycuda")
    told = run("build-bundle.sh", "--checkpoint", "/a folder", "--slots", "2", **env)
    assert "Fake Orin (compute capability 8.7)" in told
    assert "TensorRT 10.3.0" in told
    build = "edged bundle build chattts --backend tensorrt --checkpoint /a folder --slots 2"
    assert calls(tmp_path) == ["nvpmodel -q", build]
    assert "bundle verify /made" in told


def test_the_disk_of_the_new_bundle_is_looked_at(
    board: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    env = board("tensorrt", "pycuda")
    df = tmp_path / "bin" / "df"
    df.write_text(f'#!/bin/sh\necho "$2" > {tmp_path}/looked\necho Filesystem\necho x x x 100 x\n')
    df.chmod(0o755)
    out = tmp_path / "a disk" / "not yet" / "there"
    told = run("build-bundle.sh", "--out", out, "--checkpoint", "x", **env)
    assert (tmp_path / "looked").read_text().strip() == str(tmp_path)
    assert f"100 MB are free in {tmp_path}" in told


@pytest.mark.parametrize(
    "script", ["build-bundle.sh", "use-tensorrt.sh", "install-pycuda.sh", "plugin/build.sh"]
)
def test_every_script_tells_how_it_is_called(script: str) -> None:
    assert Path(script).name in run(script, "--help")


@pytest.mark.parametrize("fails", [False, True])
def test_clocks_are_put_back_however_the_build_ends(
    board: Callable[..., dict[str, str]], tmp_path: Path, fails: bool
) -> None:
    env = board("tensorrt", "pycuda")
    script = Path(env["EDGED"])
    if fails:
        script.write_text(f"{script.read_text()}exit 7\n")
    run("build-bundle.sh", "--checkpoint", "x", "--max-clocks", code=7 if fails else 0, **env)
    assert not any("--max-clocks" in call for call in calls(tmp_path)), (
        "wherever it stands, it is the script's"
    )
    words = [call.split()[:2] for call in calls(tmp_path)]
    assert words == [
        ["nvpmodel", "-q"],
        ["jetson_clocks", "--store"],
        ["jetson_clocks"],
        ["edged", "bundle"],
        ["jetson_clocks", "--restore"],
    ]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_clocks_are_put_back_when_it_is_interrupted(
    board: Callable[..., dict[str, str]], tmp_path: Path, number: signal.Signals
) -> None:
    env = board("tensorrt", "pycuda")
    with Path(env["EDGED"]).open("a") as script:
        script.write("sleep 1\n")
    command = [str(SCRIPTS / "build-bundle.sh"), "--max-clocks", "--checkpoint", "x"]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as running:
        until = time.monotonic() + 30
        while not any(call.startswith("edged bundle") for call in calls(tmp_path)):
            assert time.monotonic() < until
            time.sleep(0.02)
        running.send_signal(number)
        assert running.wait(30) == 128 + number
    assert calls(tmp_path)[-1].startswith("jetson_clocks --restore")


@pytest.mark.parametrize(
    ("packages", "macros", "says"),
    [
        (("tensorrt", "pycuda"), {"INIT": 100}, "CUDA_ERROR_NO_DEVICE"),
        (("pycuda",), {}, "use-tensorrt.sh"),
        (("tensorrt",), {}, "install-pycuda.sh"),
        (("tensorrt", "pycuda", "broken"), {}, "--extra build --extra chattts"),
    ],
)
def test_it_builds_nothing_where_something_is_missing(
    board: Callable[..., dict[str, str]],
    tmp_path: Path,
    packages: tuple[str, ...],
    macros: dict[str, object],
    says: str,
) -> None:
    told = run("build-bundle.sh", "--checkpoint", "x", code=1, **board(*packages, **macros))
    assert says in told
    assert calls(tmp_path) == []


def test_without_a_checkpoint_it_tells_how_it_is_called(board: Callable[..., dict[str, str]]) -> None:
    assert "--checkpoint DIR" in run("build-bundle.sh", "--slots", "2", code=2, **board())
