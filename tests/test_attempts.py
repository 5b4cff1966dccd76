"""Deaths while the voices are loaded: counted over processes, and the version before after two of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import msgspec
import pytest
import yaml

from edged.attempts import FILE, Attempts
from edged.bundle_write import write_manifest
from edged.manifest import read_manifest
from edged.store import Store
from edged.store_install import install
from tests.daemon import SERVE, running


def dies(place: Path | None, what: str) -> int:
    """A start that loads this and does not come to its end; the deaths it knew of."""
    return Attempts(place)._begin(what)


def test_only_deaths_in_a_row_with_the_same_bundles_count(tmp_path: Path) -> None:
    assert [dies(tmp_path, "a") for _ in range(3)] == [0, 1, 2]
    assert [dies(tmp_path, "b"), dies(tmp_path, "b")] == [0, 1]
    with Attempts(tmp_path).loading("b") as deaths:
        assert deaths == 2
    assert dies(tmp_path, "b") == 0
    with pytest.raises(ValueError, match="no death"), Attempts(tmp_path).loading("b"):
        raise ValueError("an error is no death")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"what": "a", "deaths": "many"}', bytes(range(256))])
def test_a_file_that_says_nothing_is_no_hindrance(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    assert [dies(tmp_path, "a"), dies(tmp_path, "a")] == [0, 1]


@pytest.mark.parametrize("place", [None, Path("/proc/self/nowhere")])
def test_where_nothing_can_be_remembered_it_loads_all_the_same(place: Path | None) -> None:
    for _ in range(3):
        with Attempts(place).loading("a") as deaths:
            assert deaths == 0


def test_a_bundle_that_takes_the_process_down_twice_makes_way(tone_bundle: Path, tmp_path: Path) -> None:
    place = Store(tmp_path / "bundles")
    second = tmp_path / "second"
    shutil.copytree(tone_bundle, second)
    write_manifest(second, msgspec.structs.replace(read_manifest(second), version="second"))
    good, new = install(place, tone_bundle), install(place, second)
    place.switch("tone", good.name)
    place.switch("tone", new.name)
    state = tmp_path / "state"
    state.mkdir()
    env = {"EDGED_BUNDLES": str(place.directory), "STATE_DIRECTORY": str(state)}
    settings = {
        "audio": {"enabled": False},
        "voices": {"bundles": ["tone"]},
        "listen": {"endpoint": f"ipc://{tmp_path}/s"},
    }
    config = tmp_path / "edged.yaml"
    config.write_text(yaml.safe_dump(settings))
    for deaths in range(2):
        with subprocess.Popen([*SERVE, "--config", str(config)], env={**os.environ, **env}) as process:
            until = time.monotonic() + 30
            while not (state / FILE).exists() or f'"deaths":{deaths}' not in (state / FILE).read_text():
                assert time.monotonic() < until
                assert process.poll() is None
                time.sleep(0.002)
            process.kill()
    with running("tone", env=env) as daemon:
        assert daemon.request({"op": "reload"})["bundles"] == {"tone": str(new.resolve())}, (
            "it is tried again"
        )
        lines = [line for line in daemon.log.splitlines() if "the version before speaks instead" in line]
        assert len(lines) == 1
        assert "died 2 times" in lines[0]
        assert "code=bundle_trial_failed" in lines[0]
        assert not (state / FILE).exists()
        daemon.stop()
        daemon.start()
        assert daemon.log.count("speaks instead") == 1
