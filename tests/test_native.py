"""Builds of the native decoder: which there are, who can run them, and what a bundle has of them."""

from __future__ import annotations

import logging
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from edged import native, settings
from edged.bundle import Bundle
from edged.compiler.native import built, compiler
from edged.engine.buffers import Arena
from edged.engine.decoder import DecoderEngine
from edged.engine.ort import OrtEngine
from edged.errors import EngineError
from edged.voices.chattts.voice import DECODER, decoder_files, engine
from tests import decoders
from tests.bundles import build_chattts

CPUINFO = {
    "x86_64-avx512": "flags\t\t: fpu avx2 fma avx512f avx512bw avx512dq avx512vl avx512_vnni sse\n",
    "x86_64-avx2": "flags\t\t: fpu avx2 fma avx512f sse\n",
    "aarch64-dotprod": "Features\t: fp asimd aes asimddp\n",
}


@pytest.fixture
def bundle(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    decoders.library("plain")  # skips without a compiler
    return build_chattts(tmp_path / "b", tiny_checkpoint, precision="int4")


@pytest.mark.parametrize("level", native.LEVELS, ids=lambda level: level.name)
def test_a_processor_gets_what_it_can_run(level: native.Level) -> None:
    cpuinfo = f"processor\t: 0\n{CPUINFO[level.name]}processor\t: 1\n"
    assert native.runnable(level, cpuinfo)
    assert not native.runnable(level, cpuinfo.replace(sorted(level.needs)[0], "other"))
    assert not native.runnable(level, "")
    others = [other for other in native.LEVELS if native.runnable(other, cpuinfo)]
    assert others[0] == level  # the fastest is named first


def test_the_best_is_among_those_that_are_there() -> None:
    names = [level.name for level in native.levels()]
    assert native.best([]) == native.best(["x86_64-avx10"]) == ""
    found = native.best(names)
    assert found in (*names, "")
    assert native.best([found]) == found
    assert all(level.machine == platform.machine() for level in native.levels())


def test_a_bundle_carries_all_of_its_architecture_and_says_so(bundle: Path) -> None:
    manifest = Bundle.load(bundle).manifest
    carried = [entry.name.removeprefix(DECODER) for entry in manifest.data if entry.name.startswith(DECODER)]
    assert carried == [level.name for level in native.levels()]
    assert manifest.provenance["decoder"] == ", ".join(carried)


def test_the_same_sources_give_the_same_bytes() -> None:
    decoders.library("plain")
    level = native.levels()[0]
    assert built.__wrapped__(compiler(), level) == built.__wrapped__(compiler(), level)


@pytest.mark.parametrize("level", native.LEVELS, ids=lambda level: level.name)
def test_products_of_every_architecture_are_the_plain_ones(level: native.Level, tmp_path: Path) -> None:
    """Those of another architecture in an emulator."""
    here = level.machine == platform.machine()
    command = compiler() if here else (f"{level.machine}-linux-gnu-gcc",)
    emulator = () if here else (f"qemu-{level.machine}-static", "-cpu", "max")
    missing = [one[0] for one in (command, emulator) if one and shutil.which(one[0]) is None]
    if missing or not command:
        pytest.skip(f"not installed: {', '.join(missing) or 'a C compiler'}")
    if here and native.best([level.name]) != level.name:
        pytest.skip(f"this processor cannot run {level.name}")
    source, program = Path(__file__).parent / "products.c", tmp_path / "products"
    build = [*command, "-std=gnu11", "-O2", "-static", "-w", f"-I{native.SOURCE.parent}", *level.flags]
    subprocess.run([*build, str(source), "-o", str(program)], check=True)
    told = subprocess.run([*emulator, str(program)], capture_output=True, text=True, check=False)
    assert told.stdout == "fast 1 differing 0\n"


@pytest.mark.parametrize(
    "options",
    [{"precision": "fp32"}, {"precision": "int4", "kv": "float16"}, {"precision": "int4", "no_native": True}],
    ids=["fp32", "float16 cache", "not wanted"],
)
def test_bundles_without_one_are_whole(
    tiny_checkpoint: Path, tmp_path: Path, options: dict[str, object]
) -> None:
    made = Bundle.load(build_chattts(tmp_path / "b", tiny_checkpoint, **options))
    assert decoder_files(made) is None
    assert made.manifest.provenance["decoder"] == "none"
    opened = engine(made, "gpt", settings.Engine(), Arena())
    assert isinstance(opened, OrtEngine)
    opened.close()


def test_without_a_compiler_the_build_says_what_is_lost(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with caplog.at_level(logging.WARNING):
        made = build_chattts(tmp_path / "b", tiny_checkpoint, precision="int4")
    assert "no C compiler" in caplog.text
    assert decoder_files(Bundle.load(made)) is None


@pytest.mark.parametrize("command", ["false", "true"])
def test_a_compiler_that_fails_is_an_error(command: str) -> None:
    with pytest.raises(EngineError, match="plain"):
        built((command,), native.Level("plain", "", frozenset(), ()))


def test_the_settings_choose(bundle: Path) -> None:
    made = Bundle.load(bundle)
    if not native.best([level.name for level in native.levels()]):
        pytest.skip("this processor can run none of the builds")
    for wanted, kind in ((True, DecoderEngine), (False, OrtEngine)):
        opened = engine(made, "gpt", settings.Engine(native=wanted), Arena())
        assert isinstance(opened, kind)
        opened.close()


def test_a_library_that_does_not_load_leaves_onnx_runtime_and_a_warning(
    bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = Bundle.load(bundle, verify=False)
    for file in (bundle / "engines").glob("*.so"):
        file.unlink()  # the build has loaded it here: to change the file itself would end us
        shutil.copyfile(bundle / "manifest.json", file)  # as one for another C library or processor
    with caplog.at_level(logging.WARNING):
        opened = engine(made, "gpt", settings.Engine(), Arena())
    assert isinstance(opened, OrtEngine)
    assert "ONNX Runtime is used" in caplog.text or not native.best([level.name for level in native.levels()])
    opened.close()
