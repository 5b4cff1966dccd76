"""Building, verifying and changing ChatTTS bundles, through the compiler and through the real command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile

from edged import settings
from edged.bundle import Bundle, read_manifest
from edged.bundle_write import write_manifest
from edged.compiler.chattts import people
from edged.compiler.chattts.teach import divergence, snr_db
from edged.engine.buffers import Arena
from edged.errors import BadSpeaker, BadValue, CheckpointMissingFile, EdgedError
from edged.voices import golden
from edged.voices.chattts import data, speakers
from edged.voices.load import open_bundle
from tests.bundles import build_chattts

HIDDEN = 64
GENERATOR = np.random.default_rng(7)
CODE = speakers.encode_speaker(GENERATOR.normal(0, 1, HIDDEN))
STATISTICS = speakers.encode_statistics(GENERATOR.uniform(1, 2, HIDDEN), GENERATOR.normal(0, 1, HIDDEN))


def edged(*arguments: object, code: int = 0) -> str:
    """stdout of the real command (stderr when it fails, which is then expected)."""
    result = subprocess.run(
        [sys.executable, "-m", "edged", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr if code else result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@pytest.fixture(scope="module")
def statistics(folder: Path) -> Path:
    file = folder / "spk_stat.txt"
    file.write_text(STATISTICS + "\n", "utf-8")
    return file


@pytest.fixture(scope="module")
def full(tiny_checkpoint: Path, folder: Path, statistics: Path) -> Path:
    """A bundle with everything, built by the command."""
    out = folder / "full"
    printed = edged(
        *("bundle", "build", "chattts", "--checkpoint", tiny_checkpoint, "--precision", "int8"),
        *("--backend", "onnxruntime", "--out", out, "--speaker", f"anna={CODE}", "--spk-stat", statistics),
        *("--override", "layers.0.*=fp32", "--with-encoder", "--positions", 512, "--set", "with_codes=true"),
    )
    assert printed.strip() == str(out)
    return out


@pytest.fixture(scope="module")
def quarter(tiny_checkpoint: Path, folder: Path) -> Path:
    return build_chattts(folder / "quarter", tiny_checkpoint, precision="int4", positions=128)


def content(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}


def test_the_bundle_says_what_it_is(full: Path, tiny_checkpoint: Path) -> None:
    manifest = read_manifest(full)
    assert (manifest.family, manifest.precision, manifest.backend) == ("chattts", "int8", "onnxruntime")
    assert [engine.name for engine in manifest.engines] == ["gpt", "vocoder", "codes", "encoder"]
    assert [voice.name for voice in manifest.voices] == ["anna"]
    assert manifest.licence.weights == "CC-BY-NC-4.0"
    assert "NonCommercial" in (full / "LICENSE").read_text()
    notice = (full / "NOTICE").read_text()
    hashes = [v for name, v in manifest.provenance.items() if name.startswith("checkpoint ")]
    assert len(hashes) == 9
    assert all(digest in notice for digest in hashes)
    assert manifest.provenance["override layers.0.*"] == "fp32"
    assert str(tiny_checkpoint) not in (full / "manifest.json").read_text()
    assert manifest.golden is not None


def test_the_golden_utterance_is_spoken_again(full: Path) -> None:
    bundle = Bundle.load(full)
    (voice,) = open_bundle(bundle, settings.Engine(), Arena())
    try:
        voice.warm_up()
        assert bundle.manifest.golden is not None
        golden.check(voice, bundle.manifest.golden)
    finally:
        voice.close()


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
def test_the_same_input_gives_the_same_bytes(precision: str, tiny_checkpoint: Path, tmp_path: Path) -> None:
    first, second = (
        content(
            build_chattts(
                tmp_path / name,
                tiny_checkpoint / inner,
                precision=precision,
                positions=64,
                speakers=(f"anna={CODE}",),
            )
        )
        for name, inner in (("one", ""), ("two", "asset"))
    )
    assert first == second


def test_a_killed_build_leaves_nothing(tiny_checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "edged", "bundle", "build", "chattts"]
    for phase in ("heads", "check"):
        process = subprocess.Popen(
            [*command, "--checkpoint", str(tiny_checkpoint), "--out", str(out)],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.strip() == f"edged: {phase}":
                process.send_signal(signal.SIGKILL)
                break
        process.wait()
        process.stderr.close()
        assert not out.exists()
    left = list(tmp_path.iterdir())
    assert left
    assert all(path.name.startswith(".killed.") for path in left)
    build_chattts(out, tiny_checkpoint, positions=64)
    assert [path.name for path in tmp_path.iterdir()] == ["killed"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"precision": "int5"}, BadValue),
        ({"overrides": ["layers.0"]}, BadValue),
        ({"overrides": ["layers.0=int3"]}, BadValue),
        ({"positions": 8}, BadValue),
        ({"slots": 0}, BadValue),
        ({"speakers": ["anna"]}, BadSpeaker),
        ({"speakers": ["anna=abc"]}, BadSpeaker),
        ({"speakers": [f"Anna Lee={CODE}"]}, BadValue),
        ({"speakers": [f"anna={CODE}", f"anna={CODE}"]}, BadSpeaker),
        ({"speakers": ["anna=@/nonexistent"]}, BadSpeaker),
        ({"spk_stat": "/nonexistent"}, BadSpeaker),
        ({"checkpoint": "/nonexistent"}, CheckpointMissingFile),
        ({"backend": "tensorflow"}, EdgedError),
    ],
)
def test_wrong_options_are_named_before_anything_is_written(
    tiny_checkpoint: Path, tmp_path: Path, options: dict[str, object], error: type[EdgedError]
) -> None:
    with pytest.raises(error):
        build_chattts(tmp_path / "b", **{"checkpoint": tiny_checkpoint, **options})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_without_speakers_there_is_one_voice(tiny_checkpoint: Path, statistics: Path) -> None:
    assert [p.name for p in people.collect((), "", HIDDEN).voices] == [people.UNNAMED]
    (drawn,) = people.collect((), statistics, HIDDEN).voices
    assert drawn.name == people.RANDOM
    assert drawn.code == speakers.encode_speaker(speakers.random_speaker(STATISTICS, HIDDEN, 1))


# -- verification -------------------------------------------------------------------------------


def test_fp32_is_the_checkpoint(tiny_checkpoint: Path, folder: Path) -> None:
    exact = build_chattts(folder / "exact", tiny_checkpoint, positions=128)
    printed = edged("bundle", "verify", exact, "--against", tiny_checkpoint)
    assert printed.count(" ok") == 5
    assert "FAILED" not in printed


def test_a_report_has_figures_and_plots(full: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    loosen(full)
    printed = edged("bundle", "verify", full, "--against", tiny_checkpoint, "--report", tmp_path / "r")
    assert "FAILED" not in printed
    names = {path.name for path in (tmp_path / "r").iterdir()}
    assert names == {"report.json", "report.md", "weights.png", "cache.png", "divergence.png"}
    told = json.loads((tmp_path / "r/report.json").read_text())
    assert told["same_checkpoint"]
    assert told["bits"]["layers.0.qkv"] == 32, "the override"
    assert told["bits"]["layers.1.qkv"] == 8
    assert told["weights"]["layers.0.qkv"] == 200.0
    assert 30 < told["weights"]["layers.1.qkv"] < 60
    assert len(told["keys"]) == len(told["values"]) == 2
    assert "layers.1.qkv" in (tmp_path / "r/report.md").read_text()


def loosen(bundle: Path, **thresholds: float) -> None:
    """Random weights give a flat distribution: real thresholds need not hold for it."""
    loose = {
        "min_weight_snr_db": 10.0,
        "min_cache_snr_db": -100.0,
        "min_token_agreement": 0.0,
        "max_kl": 100.0,
        "min_waveform_snr_db": -100.0,
    }
    write_manifest(bundle, msgspec.structs.replace(read_manifest(bundle), thresholds=loose | thresholds))


def test_a_bundle_beyond_its_thresholds_fails(quarter: Path, tiny_checkpoint: Path) -> None:
    loosen(quarter)
    edged("bundle", "verify", quarter, "--against", tiny_checkpoint)
    loosen(quarter, max_kl=1e-9)
    told = edged("bundle", "verify", quarter, "--against", tiny_checkpoint, code=1)
    assert "bundle_inaccurate" in told
    assert "max_kl" in told


def test_another_checkpoint_is_noticed(quarter: Path, tmp_path: Path) -> None:
    from edged.compiler.chattts.random_checkpoint import make_checkpoint

    make_checkpoint(tmp_path / "other", seed=2)
    loosen(quarter)
    told = edged("bundle", "verify", quarter, "--against", tmp_path / "other", code=1)
    assert "not the checkpoint" in told
    assert "min_weight_snr_db" in told


def test_verify_says_what_it_cannot_do(tone_bundle: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    assert "chattts" in edged("bundle", "verify", tone_bundle, "--against", tiny_checkpoint, code=1)
    assert "--against" in edged("bundle", "verify", tone_bundle, "--report", tmp_path, code=2)
    assert "--checkpoint" in edged("bundle", "build", "chattts", code=2)
    assert "checkpoint" in edged("bundle", "build", "tone", "--checkpoint", tiny_checkpoint, code=2)


def test_snr_and_divergence() -> None:
    x = np.array([3.0, -4.0])
    assert snr_db(x, x) == 200.0
    assert snr_db(x, x * 1.1) == pytest.approx(20.0, abs=0.01)
    assert snr_db(np.zeros(2), x) == 0.0
    logits = np.log(np.array([[0.5, 0.5], [0.9, 0.1]]))
    other = np.log(np.array([[0.5, 0.5], [0.5, 0.5]])) + 7
    assert divergence(logits, other) == pytest.approx([0.0, 0.9 * np.log(1.8) + 0.1 * np.log(0.2)])


# -- voices in a bundle -------------------------------------------------------------------------


@pytest.fixture
def copy(full: Path, tmp_path: Path) -> Path:
    shutil.copytree(full, tmp_path / "copy")
    return tmp_path / "copy"


def test_random_voices_are_drawn_printed_and_stored(copy: Path, quarter: Path) -> None:
    code = edged("voice", "random", "--bundle", copy, "--seed", 5).strip()
    assert code == edged("voice", "random", "--bundle", copy, "--seed", 5).strip()
    assert code != edged("voice", "random", "--bundle", copy, "--seed", 6).strip()
    assert speakers.decode_speaker(code, HIDDEN).shape == (HIDDEN,)
    edged("voice", "random", "--bundle", copy, "--seed", 5, "--name", "bert")
    listed = edged("voice", "list", "--bundle", copy)
    assert "anna" in listed
    assert "bert" in listed
    assert os.stat(copy / "engines/gpt.onnx").st_nlink == 1, "the runtime takes no weights with two names"
    voices = open_bundle(Bundle.load(copy), settings.Engine(), Arena())
    assert [voice.card.name for voice in voices] == ["anna", "bert"]
    for voice in voices:
        voice.close()
    assert "--spk-stat" in edged("voice", "random", "--bundle", quarter, "--seed", 1, code=1)


def test_a_recording_becomes_a_voice(copy: Path, quarter: Path, tmp_path: Path) -> None:
    rate = 16_000
    clock = np.arange(2 * rate) / rate
    sound = np.sin(2 * np.pi * 200 * clock) * np.sin(2 * np.pi * 3 * clock) * 0.5
    wav = tmp_path / "ref.wav"
    soundfile.write(wav, np.stack([sound, sound], 1), rate)
    recording = ("--audio", wav, "--text", "Good morning.")
    code = edged("voice", "enroll", "--bundle", copy, *recording).strip()
    codes = speakers.decode_prompt(code, 4, 625)
    assert codes.shape == (4, (1 + 2 * 24_000 // 256) // 2)
    edged("voice", "enroll", "--bundle", copy, *recording, "--name", "carla", "--description", "The boss")
    stored = data.read(Bundle.load(copy).data_path("speakers"), data.Speakers)
    assert stored.statistics == STATISTICS
    assert stored.voices[1] == data.Speaker(
        name="carla", prompt=code, text="Good morning.", description="The boss"
    )
    assert "The boss" in edged("voice", "list", "--bundle", copy)
    assert "--with-encoder" in edged("voice", "enroll", "--bundle", quarter, *recording, code=1)
    soundfile.write(wav, np.tile(sound, 5), rate)
    assert "cut the recording" in edged("voice", "enroll", "--bundle", copy, *recording, code=1)
    soundfile.write(wav, np.zeros(rate * 2), rate)
    assert "no sound" in edged("voice", "enroll", "--bundle", copy, *recording, code=1)
    wav.write_text("not a sound")
    assert "cannot be read" in edged("voice", "enroll", "--bundle", copy, *recording, code=1)


def test_two_voices_are_added_while_a_reader_looks_on(copy: Path) -> None:
    """A bundle is whole at every moment: a daemon may start while a voice is being added."""
    command = [sys.executable, "-m", "edged", "voice", "random", "--bundle", str(copy), "--seed", "1"]
    process = subprocess.Popen([*command, "--name", "dora"], stderr=subprocess.DEVNULL)
    seen = set()
    while process.poll() is None:
        seen.add(len(read_manifest(copy).voices))
        time.sleep(0.01)
    assert process.returncode == 0
    assert seen <= {1, 2}
    assert len(Bundle.load(copy).manifest.voices) == 2


# -- what must not happen -----------------------------------------------------------------------


def test_numbers_that_are_none_never_pass_for_equal() -> None:
    broken = np.array([1.0, np.nan])
    assert snr_db(np.ones(2), broken) == snr_db(broken, np.ones(2)) == float("-inf")


def test_a_manifest_without_limits_fails_verification(
    quarter: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "unlimited"
    shutil.copytree(quarter, bundle)
    write_manifest(bundle, msgspec.structs.replace(read_manifest(bundle), thresholds={"min_typo": 1.0}))
    assert "min_weight_snr_db" in edged("bundle", "verify", bundle, "--against", tiny_checkpoint, code=1)


def test_an_override_that_matches_nothing_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="matches no layer"):
        build_chattts(tmp_path / "b", tiny_checkpoint, overrides=("layer.0.*=int8",))
    assert not (tmp_path / "b").exists()


def test_voices_added_at_the_same_time_are_all_kept(copy: Path) -> None:
    command = [sys.executable, "-m", "edged", "voice", "random", "--bundle", str(copy)]
    running = [
        subprocess.Popen([*command, "--seed", str(n), "--name", f"v{n}"], stderr=subprocess.DEVNULL)
        for n in range(4)
    ]
    assert [process.wait(60) for process in running] == [0] * 4
    assert {f"v{n}" for n in range(4)} <= {voice.name for voice in Bundle.load(copy).manifest.voices}


def test_a_build_does_not_drop_voices_that_were_added(copy: Path, tiny_checkpoint: Path) -> None:
    edged("voice", "random", "--bundle", copy, "--seed", 9, "--name", "precious")
    with pytest.raises(BadValue, match="precious"):
        build_chattts(copy, tiny_checkpoint)
    assert "precious" in {voice.name for voice in Bundle.load(copy).manifest.voices}


def test_a_link_to_a_bundle_stays_a_link(copy: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(copy)
    edged("voice", "random", "--bundle", link, "--seed", 3, "--name", "linked")
    assert link.is_symlink()
    assert "linked" in {voice.name for voice in Bundle.load(copy).manifest.voices}


def test_a_speaker_that_cannot_be_loaded_is_not_stored(copy: Path) -> None:
    huge = speakers.encode_statistics(np.full(HIDDEN, 60_000.0), np.full(HIDDEN, 60_000.0))
    with pytest.raises(BadSpeaker):
        speakers.random_speaker(huge, HIDDEN, 1)
    with pytest.raises(BadSpeaker):
        people.add(Bundle.load(copy), people.person("bad", code=speakers.encode_speaker(np.ones(3))))
