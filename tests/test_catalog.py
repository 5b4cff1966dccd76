"""Which voices are loaded: names that clash are told before any of them is."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from edged.bundle import MANIFEST, read_manifest
from edged.bundle_write import write_manifest
from edged.engine.buffers import Arena
from edged.errors import ConfigError
from edged.settings import Settings, Voices
from edged.voices.catalog import load_voices, sources


def copy(bundle: Path, out: Path, **changes: object) -> Path:
    """A copy of a bundle, with another manifest."""
    shutil.copytree(bundle, out)
    write_manifest(out, msgspec.structs.replace(read_manifest(out), **changes))
    assert (out / MANIFEST).is_file()
    return out


def refused(*bundles: Path) -> str:
    arena = Arena()
    settings = Settings(voices=Voices(bundles=[str(b) for b in bundles]))
    with pytest.raises(ConfigError) as caught:
        load_voices(settings, sources(settings), arena, lambda status: None)
    assert not arena.plan(), "something was loaded first"
    assert caught.value.hint
    return caught.value.message


def test_two_bundles_of_one_name_are_refused_before_any_is_loaded(tone_bundle: Path, tmp_path: Path) -> None:
    (voice,) = read_manifest(tone_bundle).voices
    other = copy(tone_bundle, tmp_path / "a", voices=(msgspec.structs.replace(voice, name="other"),))
    told = f"two bundles have the name 'tone': {tone_bundle} and {other}"
    assert refused(tone_bundle, other) == told
    assert (
        refused(tone_bundle, tone_bundle)
        == f"two bundles have the name 'tone': {tone_bundle} and {tone_bundle}"
    )


def test_two_voices_of_one_name_are_refused_before_any_is_loaded(tone_bundle: Path, tmp_path: Path) -> None:
    other = copy(tone_bundle, tmp_path / "b", name="other")
    told = f"two bundles have a voice named 'tone': {tone_bundle} and {other}"
    assert refused(tone_bundle, other) == told
