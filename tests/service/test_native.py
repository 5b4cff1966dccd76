"""A ChatTTS bundle that brings native code, installed and spoken with as a service."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from edged import native
from edged.compiler.native import compiler
from tests.bundles import build_chattts
from tests.checkpoints import tiny
from tests.service.edged import Edged

pytestmark = [pytest.mark.systemd, pytest.mark.timeout(600)]


def test_the_unit_may_run_the_native_decoder_of_a_bundle(edged: Edged, tmp_path: Path) -> None:
    level = native.best([level.name for level in native.LEVELS])
    if not (compiler() and level):
        pytest.skip("no C compiler (cc), or no native decoder for this processor")
    bundle = build_chattts(tmp_path / "bundle", tiny(tmp_path / "checkpoint"), precision="int8")
    run, root = edged.machine.run, edged.machine.root
    shutil.copytree(bundle, root / "srv/chattts")
    try:
        run("sh", "-c", "umask 077; edged bundle install /srv/chattts")
        run("edged", "bundle", "activate", "chattts", "--no-reload")
        edged.configure("voices: {bundles: [chattts]}\naudio: {enabled: false}\n")
        edged.start()
        assert edged.speaks()
        library = f"engines/decoder-{level}.so"
        mapped = (root / f"proc/{edged.pid}/maps").read_text().splitlines()
        mine = [line.split(maxsplit=5) for line in mapped if line.endswith(library)]
        assert any(modes.startswith("r-x") for _, modes, *_ in mine)
        assert all("/var/lib/edged/bundles/chattts-" in path for *_, path in mine)
        assert "ONNX Runtime is used" not in edged.log
    finally:
        run("systemctl", "stop", "edged", check=False)
        run("sh", "-c", "rm -rf /srv/chattts /var/lib/edged/bundles/*chattts*")
