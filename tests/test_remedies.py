"""How an optional part is installed: in a checkout, beside a wheel, on a Jetson."""

from __future__ import annotations

from pathlib import Path

from edged.errors import MissingExtra, TensorRTMissing, remedies


def test_the_command_is_for_this_machine(tmp_path: Path) -> None:
    nowhere, board = tmp_path / "none", tmp_path / "nv_tegra_release"
    board.touch()
    assert remedies.install("build", tmp_path, nowhere) == "install it with: pip install 'edged[build]'"
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "edged").mkdir()
    assert "pip install -e '.[build]'" in remedies.install("build", tmp_path, nowhere)
    assert "-e '.[build]'" in remedies.install("build", tmp_path, board), "of a registry there, too"
    for script in ("use-tensorrt.sh", "install-pycuda.sh"):
        assert script in remedies.install("tensorrt", tmp_path, board)


def test_whatever_of_tensorrt_is_missing_has_one_remedy() -> None:
    assert TensorRTMissing("none").hint == MissingExtra("pycuda", "tensorrt", "it").hint
