"""Who speaks in a bundle: checks the speakers given to a build, and adds one to a finished bundle.

CLI process only. Neighbours: `build.py` and `edged voice` call; `edged.voices.chattts.speakers` decodes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from edged.bundle import MANIFEST, Bundle, Manifest, VoiceInfo, read_manifest
from edged.bundle_write import describe, rewriting, write_manifest
from edged.errors import BadSpeaker, BadValue, BundleError
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
    if statistics:
        speakers.decode_statistics(drawn, hidden)
    if not voices and drawn:
        voices = [person(RANDOM, code=speakers.encode_speaker(speakers.random_speaker(drawn, hidden, 1)))]
    return data.Speakers(voices=tuple(voices) or (person(UNNAMED),), statistics=drawn)


def check_kept(out: Path, known: data.Speakers) -> None:
    """A build must not silently drop the voices that were added to the bundle it replaces."""
    if not (out / MANIFEST).is_file():
        return
    try:
        old = {voice.name for voice in read_manifest(out).voices}
    except BundleError:
        return  # what is damaged has nothing to keep
    lost = old - {voice.name for voice in known.voices} - {UNNAMED, RANDOM}
    if lost:
        raise BadValue(
            f"{out}: holds voices that this build would drop: {', '.join(sorted(lost))}",
            "give them with --speaker, choose another --out, or move the old bundle away",
        )


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
    """Puts a voice into a bundle, or in the place of its namesake; the bundle changes in one step.

    One at a time: a second process waits, and then adds to what the first has made.
    """
    with alone(bundle.path):
        return _add(Bundle.load(bundle.path, verify=False), new)


@contextmanager
def alone(bundle: Path, *, reading: bool = False) -> Iterator[None]:
    """Holds the folder of a bundle against others that add voices; readers keep only those out."""
    handle = os.open(bundle.resolve().parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH if reading else fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _add(bundle: Bundle, new: data.Speaker) -> Manifest:
    # One voice that cannot be loaded would keep the daemon from starting with all the others.
    if new.code:
        speakers.decode_speaker(new.code, bundle.limit("hidden"))
    if new.prompt:
        speakers.decode_prompt(new.prompt, bundle.limit("codebooks"), bundle.limit("audio_tokens") - 1)
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
