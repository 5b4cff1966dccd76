"""Who speaks in a bundle: checks the speakers given to a build, and adds one to a finished bundle.

CLI process only. Neighbours: `build.py` and `edged voice` call; `edged.voices.chattts.speakers` decodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from edged.bundle import MANIFEST, Bundle, Manifest, VoiceInfo
from edged.bundle_write import describe, rewriting, write_manifest
from edged.errors import BadSpeaker, BadValue
from edged.voices.chattts import data, speakers

UNNAMED = "neutral"  # the voice of a bundle that was given no speaker: [empty_spk]
RANDOM = "random-1"  # or this one, when there are statistics to draw from
SPEAKERS = "data/speakers.json"
LANGUAGES = ("zh", "en")


def collect(given: Sequence[str], statistics: str | Path, hidden: int) -> data.Speakers:
    """NAME=CODE texts (CODE may be @FILE) and a file of statistics. Raises `BadSpeaker`."""
    voices: list[data.Speaker] = []
    for text in given:
        name, equals, code = text.partition("=")
        if not equals:
            raise BadSpeaker(f"speaker {text[:40]!r}", "expected NAME=CODE, or NAME=@FILE")
        code = (_read(Path(code[1:])) if code.startswith("@") else code).strip()
        speakers.decode_speaker(code, hidden)
        voices.append(person(name, code=code))
    names = [voice.name for voice in voices]
    if len(set(names)) != len(names):
        raise BadSpeaker("two speakers have the same name")
    drawn = _read(Path(statistics)).strip() if statistics else ""
    if drawn:
        speakers.decode_statistics(drawn, hidden)
    if not voices and drawn:
        voices = [person(RANDOM, code=speakers.encode_speaker(speakers.random_speaker(drawn, hidden, 1)))]
    return data.Speakers(voices=tuple(voices) or (person(UNNAMED),), statistics=drawn)


def person(name: str, **facts: str) -> data.Speaker:
    """A checked `Speaker`."""
    try:
        return msgspec.convert({"name": name, **facts}, data.Speaker)
    except msgspec.ValidationError as error:
        raise BadValue(
            f"voice name {name!r}", "use lower-case letters, digits, dots, dashes and underscores"
        ) from error


def info(person: data.Speaker) -> VoiceInfo:
    """What clients are told."""
    described = person.description or "ChatTTS, Chinese and English"
    return VoiceInfo(name=person.name, languages=LANGUAGES, description=described)


def random_code(bundle: Bundle, seed: int) -> str:
    """The code of a speaker drawn from the bundle's statistics. Raises `BadSpeaker`."""
    statistics = data.read(bundle.data_path("speakers"), data.Speakers).statistics
    if not statistics:
        raise BadSpeaker(
            f"{bundle.path}: has no statistics to draw from",
            "build the bundle with --spk-stat FILE",
        )
    return speakers.encode_speaker(speakers.random_speaker(statistics, bundle.limit("hidden"), seed))


def add(bundle: Bundle, new: data.Speaker) -> Manifest:
    """Puts a voice into a bundle, or in the place of its namesake; the bundle changes in one step."""
    known = data.read(bundle.data_path("speakers"), data.Speakers)
    replaced = {voice.name: voice for voice in known.voices} | {new.name: new}
    infos = {voice.name: voice for voice in bundle.manifest.voices} | {new.name: info(new)}
    manifest = bundle.manifest
    with rewriting(bundle.path, (MANIFEST, SPEAKERS)) as root:
        data.write(
            root / SPEAKERS, data.Speakers(voices=tuple(replaced.values()), statistics=known.statistics)
        )
        digest, size = describe(root, SPEAKERS)
        files = tuple(
            msgspec.structs.replace(entry, sha256=digest, bytes=size) if entry.file == SPEAKERS else entry
            for entry in manifest.data
        )
        manifest = msgspec.structs.replace(manifest, data=files, voices=tuple(infos.values()))
        write_manifest(root, manifest)
    return manifest


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSpeaker(
            f"{file}: cannot be read: {error}", "give a text file with the code in it"
        ) from error
