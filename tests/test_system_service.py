"""On a machine with the service, commands say what it does, and not what would help elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from edged import paths
from edged.cli import cli
from edged.cli.context import State
from edged.client.endpoint import look
from edged.errors import NoDaemon


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ordinary user's view of a machine with the unit: the service's folder cannot be written to."""
    (tmp_path / "units").mkdir()
    (tmp_path / "units/edged.service").touch()
    (tmp_path / "closed").write_text("a folder that cannot be made")
    for name in ("EDGED_BUNDLES", "STATE_DIRECTORY", "XDG_DATA_HOME", "EDGED_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(paths, "SYSTEM_STATE", tmp_path / "closed")
    monkeypatch.setattr(paths, "UNIT_DIRECTORIES", (tmp_path / "units",))
    return tmp_path


@pytest.mark.parametrize(
    "command", [("install", "x.tar"), ("activate", "tone"), ("rollback", "tone"), ("prune",)], ids=" ".join
)
def test_a_bundle_command_does_not_work_past_the_service(machine: Path, command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, ["bundle", *command], obj=State(), standalone_mode=False)
    assert "sudo edged bundle" in result.exception.hint  # type: ignore[union-attr]
    assert str(machine / "closed/bundles") in str(result.exception)
    assert not (machine / "home").exists()


def test_a_folder_that_was_named_is_used(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGED_BUNDLES", str(machine / "mine"))
    assert CliRunner().invoke(cli, ["bundle", "prune"], obj=State()).output == "nothing to delete\n"


def test_without_the_service_a_user_has_bundles_of_their_own(machine: Path) -> None:
    (machine / "units/edged.service").unlink()
    assert CliRunner().invoke(cli, ["bundle", "prune"], obj=State()).output == "nothing to delete\n"


def test_where_no_daemon_answers_the_service_is_asked_why(machine: Path) -> None:
    with pytest.raises(NoDaemon) as caught:
        look(f"ipc://{machine}/none.sock")
    for part in (
        "systemctl status edged",
        "journalctl -u edged -x -e",
        "edged doctor",
        "/run/edged/edged.sock",
    ):
        assert part in caught.value.hint
    assert "edged serve" not in caught.value.hint
    (machine / "units/edged.service").unlink()
    with pytest.raises(NoDaemon) as caught:
        look(f"ipc://{machine}/none.sock")
    assert caught.value.hint == "start it with: edged serve"
