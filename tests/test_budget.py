"""The budget: what a bundle takes is known before it is loaded, and a plan over it starts nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.engine.plan import total_mb
from edged.errors import PlanTooLarge
from edged.job import Params
from edged.text.prepare import prepare
from edged.voices.budget import LIBRARIES_MB, WORK_MB, check
from edged.voices.demand import demand, slots
from edged.voices.load import open_bundle
from tests.bundles import build_chattts, tone
from tests.daemon import running

TEXT = "Hello world."


@pytest.fixture(scope="module")
def chattts(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the two extra engines that the daemon never loads."""
    out = tmp_path_factory.mktemp("bundles") / "chattts"
    return build_chattts(out, tiny_checkpoint, positions=1024, slots=4, with_codes=True, with_encoder=True)


def spoken(path: Path, config: settings.Engine) -> tuple[Arena, int, np.ndarray]:
    arena = Arena()
    (voice,) = open_bundle(Bundle.load(path), config, arena)
    voice.warm_up()
    (utterance,) = prepare(TEXT, voice.frontend)
    stream = voice.synthesizer.open(utterance, Params(seed=3))
    pieces = []
    while not pieces or not pieces[-1][0]:
        (piece,) = voice.synthesizer.step([stream])
        pieces.append((piece.last, piece.samples.copy()))
    voice.synthesizer.close(stream)
    most = voice.synthesizer.max_batch
    voice.close()
    return arena, most, np.concatenate([samples for _, samples in pieces])


@pytest.mark.parametrize("wanted", [0, 1, 3, 9])
def test_the_prediction_is_what_is_allocated_for_any_number_of_slots(chattts: Path, wanted: int) -> None:
    config = settings.Engine(slots=wanted)
    predicted = {(r.name, r.shape, r.megabytes, r.kind) for r in demand(Bundle.load(chattts), config)}
    arena, most, _ = spoken(chattts, config)
    allocated = {(r.name, r.shape, r.megabytes, r.kind) for r in arena.plan()}
    assert predicted <= allocated
    work = allocated - predicted
    assert sum(size for _, _, size, _ in work) < WORK_MB
    assert most == slots(Bundle.load(chattts), config) == min(4, wanted or 4)


def test_fewer_slots_change_no_sample(chattts: Path) -> None:
    _, _, all_slots = spoken(chattts, settings.Engine())
    _, _, one = spoken(chattts, settings.Engine(slots=1))
    assert np.array_equal(all_slots, one)


def test_a_family_without_slots_is_predicted_too() -> None:
    bundle = Bundle.load(tone())
    arena = Arena()
    open_bundle(bundle, settings.Engine(slots=1), arena)
    assert slots(bundle, settings.Engine()) == 0
    assert {r.name for r in demand(bundle, settings.Engine())} <= {r.name for r in arena.plan()}


def test_what_it_advises_fits(chattts: Path) -> None:
    bundle = Bundle.load(chattts)
    rows = demand(bundle, settings.Engine())
    check(rows, total_mb(rows), [bundle], settings.Engine())
    each = total_mb(rows) - total_mb(demand(bundle, settings.Engine(slots=3)))
    most = total_mb(rows) + WORK_MB + LIBRARIES_MB - 1.5 * each
    with pytest.raises(PlanTooLarge) as caught:
        check(rows, min(most, total_mb(rows) - 0.01), [bundle], settings.Engine())
    found = re.search(r"engine.slots to (\d)", caught.value.hint)
    memory = re.search(r"service.memory_mb to (\d+)", caught.value.hint)
    assert memory
    assert int(memory[1]) >= total_mb(rows) + LIBRARIES_MB, "or the watchdog would ask for more at once"
    check(rows, int(memory[1]), [bundle], settings.Engine())
    if found:
        fewer = settings.Engine(slots=int(found[1]))
        check(demand(bundle, fewer), most, [bundle], fewer)


def test_where_no_number_of_slots_fits_the_build_is_named(chattts: Path) -> None:
    bundle = Bundle.load(chattts)
    rows = demand(bundle, settings.Engine())
    with pytest.raises(PlanTooLarge, match="past_k") as caught:
        check(rows, 1, [bundle, bundle], settings.Engine())
    for setting in ("--positions", "voices.bundles", "service.memory_mb"):
        assert setting in caught.value.hint


def test_an_over_budget_daemon_refuses_before_it_takes_the_memory(chattts: Path, tmp_path: Path) -> None:
    config = tmp_path / "edged.yaml"
    config.write_text(
        f"audio: {{enabled: false}}\nvoices: {{bundles: [{chattts}]}}\nservice: {{memory_mb: 16}}\n"
    )
    endpoint = tmp_path / "edged.sock"
    result = subprocess.run(
        [sys.executable, "-m", "edged", "serve", "--config", str(config), "--endpoint", f"ipc://{endpoint}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 2
    assert "[memory_plan]" in result.stderr
    assert "service.memory_mb allows 16" in result.stderr
    assert "Traceback" not in result.stderr
    assert "ready" not in result.stderr
    assert not endpoint.exists()


def test_status_shows_the_plan_of_the_running_daemon_and_the_log_too(chattts: Path) -> None:
    with running(chattts, engine={"slots": 2}, audio={"enabled": True}) as daemon:
        reply = daemon.request({"op": "status", "memory": True})
        rows = {row["name"]: row for row in reply["memory"]}
        caches = next(row for name, row in rows.items() if "past_k" in name)
        assert caches["shape"][0] == 2
        assert rows["player.ring"]["kind"] == "buffer"
        assert rows["limits.reply_mb"]["kind"] == "bound"
        assert {row["kind"] for row in rows.values()} == {"buffer", "weights", "bound"}
        buffers = sum(row["mb"] for row in rows.values() if row["kind"] == "buffer")
        assert buffers == pytest.approx(reply["buffers_mb"], abs=0.2)
        assert reply["budget_mb"] == 1500
        assert daemon.request({"op": "status"})["memory"] == []
        planned = [line for line in daemon.log.splitlines() if "memory plan: " in line]
        (total,) = [line for line in planned if " info " in line]  # the table is for debugging
        assert "memory plan: total" in total
        assert len(planned) > 3
        shown = subprocess.run(
            [sys.executable, "-m", "edged", "--endpoint", daemon.endpoint, "status", "--memory"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
        assert "player.ring" in shown
        assert "of 1500 MB (service.memory_mb)" in shown
