"""Limits and sampling of an edited ChatTTS bundle: what does not fit its engines is told as such."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.errors import BundleManifestInvalid
from edged.voices.chattts import data
from edged.voices.load import open_bundle
from tests.bundles import build_chattts


@pytest.fixture(scope="module")
def bundle(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    out = tmp_path_factory.mktemp("bundles") / "chattts"
    return Bundle.load(build_chattts(out, tiny_checkpoint, positions=256, slots=2))


def refused(bundle: Bundle, **changes: Any) -> str:
    arena = Arena()
    edited = Bundle(bundle.path, msgspec.structs.replace(bundle.manifest, **changes))
    with pytest.raises(BundleManifestInvalid) as caught:
        open_bundle(edited, settings.Engine(), arena)
    assert not arena.plan(), "something was loaded first"
    return caught.value.message


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("limit", ["codebooks", "hidden"])
def test_what_the_network_is_cannot_be_said_otherwise(bundle: Bundle, limit: str, change: int) -> None:
    value = bundle.limit(limit)
    told = refused(bundle, limits=bundle.manifest.limits | {limit: value + change})
    assert f"the limit {limit} is {value + change}, but gpt." in told
    assert f"has {value} in axis" in told


def test_each_limit_may_be_as_large_as_there_is_room_and_no_larger(bundle: Bundle) -> None:
    limits = bundle.manifest.limits
    positions = next(t.shape[2] for t in bundle.engine("gpt").inputs if t.name.startswith("past_"))
    full = limits | {"max_prompt": positions - 1, "max_text": positions - 5}
    largest = Bundle(bundle.path, msgspec.structs.replace(bundle.manifest, limits=full))
    (voice,) = open_bundle(largest, settings.Engine(), Arena())
    voice.warm_up()
    voice.close()
    for limit in ("max_prompt", "max_text", "prompt_piece"):
        told = refused(bundle, limits=full | {limit: full[limit] + 1})
        assert f"the limit {limit} is {full[limit] + 1}, but" in told


def test_a_missing_tensor_is_named(bundle: Bundle) -> None:
    engines = bundle.manifest.engines
    gpt = bundle.engine("gpt")
    fewer = msgspec.structs.replace(gpt, inputs=tuple(t for t in gpt.inputs if t.name != "speaker"))
    others = tuple(fewer if engine is gpt else engine for engine in engines)
    assert "gpt.speaker is missing" in refused(bundle, engines=others)


def test_a_tensor_of_other_axes_is_named(bundle: Bundle) -> None:
    for entry in bundle.manifest.engines:
        for tensor in (*entry.inputs, *entry.outputs):
            fewer = msgspec.structs.replace(tensor, shape=tensor.shape[:-1] or (1, 1))
            others = tuple(
                msgspec.structs.replace(
                    each,
                    inputs=tuple(fewer if one is tensor else one for one in each.inputs),
                    outputs=tuple(fewer if one is tensor else one for one in each.outputs),
                )
                for each in bundle.manifest.engines
            )
            if tensor.name.startswith("present_") or tensor.name in ("heard", "first", "lead", "past_frames"):
                continue  # held against the network when it is opened
            told = refused(bundle, engines=others)
            part = "past_" if tensor.name.startswith("past_") else tensor.name
            assert f"{entry.name}.{part}" in told


def test_a_speaker_that_is_none_is_a_fault_of_the_bundle(bundle: Bundle, tmp_path: Path) -> None:
    """And not of a request, so that the version before or another bundle speaks instead."""
    out = tmp_path / "copy"
    shutil.copytree(bundle.path, out)
    file = out / "data/speakers.json"
    known = data.read(file, data.Speakers)
    (person,) = known.voices
    data.write(file, data.Speakers(voices=(msgspec.structs.replace(person, code="ab"),)))
    told = refused(Bundle(out, bundle.manifest))
    assert f"the speaker {person.name!r}: " in told


def test_other_voices_than_the_speakers_are_refused(bundle: Bundle) -> None:
    (voice,) = bundle.manifest.voices
    told = refused(bundle, voices=(msgspec.structs.replace(voice, name="someone"),))
    assert "the manifest has the voices someone" in told
    assert voice.name in told


@pytest.mark.parametrize("name", ["top_k", "min_steps"])
@pytest.mark.parametrize("value", [2**31, 2**63, 10**30])
def test_sampling_beyond_what_a_tensor_holds_is_refused(tmp_path: Path, name: str, value: int) -> None:
    file = tmp_path / "sampling.json"
    file.write_text(json.dumps({name: value}))
    with pytest.raises(BundleManifestInvalid, match=name):
        data.read(file, data.Sampling)
