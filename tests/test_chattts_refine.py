"""The refine stage and what else a request may ask of a ChatTTS voice, on a tiny bundle of random weights."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

from edged import settings
from edged.bundle import Bundle
from edged.client import Client
from edged.engine.buffers import Arena
from edged.errors import BadSpeaker, BadValue, ConfigError, EmptySpeech
from edged.job import Params
from edged.protocol import Started
from edged.settings import VoiceDefaults
from edged.text.prepare import prepare
from edged.voices.api import Voice
from edged.voices.catalog import load_voices, sources
from edged.voices.chattts import data, refine, speakers
from edged.voices.chattts.synth import ChatSynthesizer
from edged.voices.chattts.tokens import SAYABLE, TAG, WORD, Tokens
from edged.voices.chattts.utterance import ChatUtterance
from edged.voices.load import open_bundle
from tests.bundles import build_chattts
from tests.daemon import Daemon, receive, receive_until, running, send

HIDDEN = 64
GENERATOR = np.random.default_rng(8)
ANNA, CARL = (speakers.encode_speaker(GENERATOR.normal(0, 1, HIDDEN)) for _ in range(2))
TEXT = "Hello world. The time is good."
REFINE = Params(refine=True, oral=2, laugh=0, break_=4, show_refined=True)


@pytest.fixture(scope="module")
def bundle_path(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundles") / "chattts"
    return build_chattts(out, tiny_checkpoint, speakers=(f"anna={ANNA}",), positions=256, slots=4)


@pytest.fixture(scope="module")
def voice(bundle_path: Path) -> Iterator[Voice]:
    (opened,) = open_bundle(Bundle.load(bundle_path), settings.Engine(), Arena())
    opened.warm_up()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def tokens(bundle_path: Path) -> Tokens:
    return Tokens(Bundle.load(bundle_path).data_path("tokenizer"))


@pytest.fixture
def synth(voice: Voice) -> Iterator[ChatSynthesizer]:
    synthesizer = voice.synthesizer
    assert isinstance(synthesizer, ChatSynthesizer)
    before, vocabulary = synthesizer._sampling, synthesizer._refiner._vocabulary
    yield synthesizer
    synthesizer._sampling, synthesizer._refiner._vocabulary = before, vocabulary
    assert synthesizer._sound.free == synthesizer.max_batch, "a stream was left open"
    assert not synthesizer._seated


@dataclass
class Spoken:
    """What came of an utterance; prompt: what was said, as the network read it; codes: what it drew."""

    samples: list[float] = field(default_factory=list)
    refined: str = ""
    warnings: list[str] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    codes: list[list[int]] = field(default_factory=list)


@dataclass
class Wanted:
    """An utterance, and the step at which it joins."""

    text: str
    params: Params
    begin: int = 0


def utterance(voice: Voice, text: str, params: Params) -> ChatUtterance:
    first = next(iter(prepare(text, voice.frontend, params=params)))
    assert isinstance(first, ChatUtterance)
    return first


def speak(voice: Voice, *wanted: Wanted) -> list[Spoken]:
    synth = voice.synthesizer
    assert isinstance(synth, ChatSynthesizer)
    results = [Spoken() for _ in wanted]
    live: dict[int, Any] = {}
    waiting = dict(enumerate(wanted))
    clock = 0
    while live or waiting:
        for number, one in list(waiting.items()):
            if one.begin <= clock and len(live) < synth.max_batch:
                live[number] = synth.open(utterance(voice, one.text, one.params), one.params)
                del waiting[number]
        numbers = list(live)
        before = {n: live[n].track.steps for n in numbers}
        pieces = synth.step([live[n] for n in numbers])
        for number, piece in zip(numbers, pieces, strict=True):
            stream, result = live[number], results[number]
            assert piece.error is None
            if stream.track.steps > before[number] and stream.row >= 0:
                result.codes.append(synth._generator._latest[stream.row].tolist())
            result.samples += piece.samples.tolist()
            result.refined += piece.refined
            result.warnings += [piece.warning] if piece.warning else []
            if piece.last:
                result.prompt = stream.ids[:, 0].tolist()
                synth.close(live.pop(number))
        clock += 1
    return results


def said(voice: Voice, tokens: Tokens, spoken: Spoken) -> list[int]:
    """The text in the code prompt that was read."""
    first, end = tokens.control("speed_5"), tokens.control("Ptts")
    assert spoken.prompt[-1] == end
    return spoken.prompt[spoken.prompt.index(first) + 1 : -1]


# -- what comes of a refined sentence -----------------------------------------------------------


def test_the_refined_text_is_what_is_said_and_what_is_shown(
    voice: Voice, tokens: Tokens, synth: ChatSynthesizer
) -> None:
    (plain,) = speak(voice, Wanted(TEXT, Params(seed=1)))
    allowed = {tokens.control(tag) for tag in SAYABLE if tokens.has(tag)}
    shown = set()
    for seed in range(4):
        (spoken,) = speak(voice, Wanted(TEXT, replace(REFINE, seed=seed)))
        words = said(voice, tokens, spoken)
        assert 0 < len(words) <= synth._refiner._vocabulary.most
        assert words != said(voice, tokens, plain)
        assert not (tokens.special_ids - allowed) & set(words)
        assert spoken.refined == tokens.written(words)
        assert spoken.samples
        shown.add(spoken.refined)
    assert len(shown) == 4, "the seed is that of the words as well"
    assert not plain.refined


def test_levels_and_seed_change_the_words_and_nothing_else_does(voice: Voice) -> None:
    def words(**changes: Any) -> str:
        return speak(voice, Wanted(TEXT, replace(REFINE, seed=5, **changes)))[0].refined

    expected = words()
    assert words(temperature=2.0, top_k=3, top_p=0.2, repetition_penalty=3.0, speaker=CARL) == expected
    for changed in ({"oral": 9}, {"laugh": 2}, {"break_": 7}, {"oral": None}):
        assert words(**changed) != expected


def test_nothing_is_shown_that_was_not_asked_for(voice: Voice) -> None:
    shown, hidden = (
        speak(voice, Wanted(TEXT, replace(REFINE, seed=5, show_refined=show)))[0] for show in (True, False)
    )
    assert shown.refined
    assert not hidden.refined
    assert hidden.samples == shown.samples


def drawing(
    synth: ChatSynthesizer, words: Sequence[int], ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Makes the words drawn these, over and over; ended: with an ending behind them."""
    refiner = synth._refiner
    normal = refiner.take

    def take(stream: Any, fed: bool) -> bool:
        generator, drawn = synth._generator, stream.refinement.drawn
        generator.ended[stream.row] = ended and drawn >= len(words)
        if words:
            generator.codes[stream.row] = words[drawn % len(words)]
        return normal(stream, fed)

    monkeypatch.setattr(refiner, "take", take)


def test_control_tokens_cannot_be_refined_into_a_prompt(
    voice: Voice, tokens: Tokens, synth: ChatSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    word, laugh = tokens.speech("good").ids[0], tokens.control("laugh")
    steering = [tokens.control(n) for n in ("Ptts", "Stts", "spk_emb", "speed_9", "break_0", "Pbreak")]
    drawing(synth, [*steering, word, laugh, *sorted(tokens.special_ids - {laugh}), 10_000], True, monkeypatch)
    (spoken,) = speak(voice, Wanted(TEXT, REFINE))
    words = said(voice, tokens, spoken)
    assert words[:2] == [word, laugh]
    assert not tokens.special_ids & set(words[2:]) - {tokens.control(t) for t in SAYABLE}
    assert "good [laugh]" in spoken.refined


@pytest.mark.parametrize("drawn", ["", "[laugh][uv_break]", "[Ptts]", ",."])
def test_a_refined_text_without_a_word_is_replaced_by_the_written_one(
    drawn: str, voice: Voice, tokens: Tokens, synth: ChatSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = drawn.strip("[]").split("][") if "[" in drawn else []
    ids = [tokens.control(n) for n in names] or [*tokens.speech(drawn).ids]
    drawing(synth, ids, True, monkeypatch)
    (spoken,) = speak(voice, Wanted(TEXT, REFINE))
    written = utterance(voice, TEXT, Params())
    assert tuple(spoken.prompt) == written.symbols
    assert refine.UNREFINED in spoken.warnings
    assert spoken.refined == tokens.written(said(voice, tokens, spoken))


def test_an_endless_refined_text_stops_at_the_limit_and_fits(
    voice: Voice, tokens: Tokens, synth: ChatSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    word, most = tokens.speech("good").ids[0], synth._refiner._vocabulary.most
    draws = 0
    run = synth._generator.refine

    def count(low: int, high: int) -> None:
        nonlocal draws
        draws += 1
        run(low, high)

    monkeypatch.setattr(synth._generator, "refine", count)
    drawing(synth, [word], False, monkeypatch)
    (spoken,) = speak(voice, Wanted(TEXT, REFINE))
    assert said(voice, tokens, spoken) == [word] * most
    assert refine.SHORTENED in spoken.warnings
    assert draws == most, "the first word comes with the prompt; one more shows that it is too long"

    draws = 0
    monkeypatch.undo()
    monkeypatch.setattr(synth._generator, "refine", count)
    drawing(synth, [word, *[tokens.control("Ptts")] * 1000], False, monkeypatch)
    (spoken,) = speak(voice, Wanted(TEXT, REFINE))
    assert said(voice, tokens, spoken) == [word]
    assert refine.UNENDED in spoken.warnings
    room = synth._generator.positions - len(utterance(voice, TEXT, REFINE).refine)
    assert draws + 1 == min(refine.MOST_WORDS, room)


def test_a_word_is_a_word_and_a_tag_is_not(tokens: Tokens) -> None:
    kinds = tokens.kinds()
    assert kinds.shape == (tokens.size,)
    assert [kinds[n] for n in tokens.speech("good, 好").ids] == [WORD, TAG, WORD]
    assert kinds[tokens.control("uv_break")] == TAG
    for name in ("Ptts", "Stts", "Ebreak", "spk_emb", "empty_spk", "speed_0", "oral_9", "break_0", "laugh_1"):
        assert kinds[tokens.control(name)] == 0


def test_written_words_are_readable(tokens: Tokens) -> None:
    ids = (*tokens.speech("good 你好 morning").ids, tokens.control("laugh"))
    assert tokens.written(ids) == "good 你好 morning [laugh]"


# -- beside others ------------------------------------------------------------------------------


def test_beside_others_the_same_is_drawn(voice: Voice) -> None:
    """Words and codes, whoever joins and leaves: every mixture of stages shares steps here."""
    wanted = [
        Wanted(TEXT, replace(REFINE, seed=1)),
        Wanted("The morning speech, there is one word.", Params(seed=2, temperature=1.5, top_k=40)),
        Wanted("Thank you.", Params(seed=3, refine=True, show_refined=True, speaker=CARL)),
        Wanted("What time is it, please?", Params(seed=4, repetition_penalty=1.5, top_p=0.9)),
        Wanted("Good day.", Params(seed=5, refine=True, oral=9, show_refined=True, temperature=0.8)),
        Wanted("Each word is said.", Params(seed=6)),
    ]
    alone = [speak(voice, one)[0] for one in wanted]
    assert all(spoken.codes for spoken in alone)
    for begins in ((0,) * 6, (0, 3, 9, 1, 4, 30), (40, 0, 2, 20, 11, 7)):
        together = speak(voice, *[replace(w, begin=b) for w, b in zip(wanted, begins, strict=True)])
        for one, other in zip(alone, together, strict=True):
            assert (other.refined, other.prompt, other.codes) == (one.refined, one.prompt, one.codes)
            np.testing.assert_allclose(other.samples, one.samples, atol=1e-4)


def test_a_step_draws_one_word_one_code_and_reads_one_piece(
    voice: Voice, synth: ChatSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = synth._generator
    runs: list[str] = []

    def watch(name: str) -> None:
        normal = getattr(generator, name)

        def run(*given: Any, **more: Any) -> Any:
            runs.append(name)
            return normal(*given, **more)

        monkeypatch.setattr(generator, name, run)

    for name in ("prompt", "step", "refine"):
        watch(name)
    params = [replace(REFINE, seed=n) if n % 2 else Params(seed=n) for n in range(4)]
    streams = [synth.open(utterance(voice, TEXT, p), p) for p in params]
    mixtures = set()
    for _ in range(60):
        runs.clear()
        synth.step(streams)
        assert len(runs) == len(set(runs))
        mixtures.add(tuple(sorted(runs)))
    for stream in streams:
        synth.close(stream)
    assert any("refine" in mixture and "step" in mixture for mixture in mixtures)


# -- how sounds are drawn -----------------------------------------------------------------------


def test_each_parameter_changes_the_codes_of_its_own_job_only(voice: Voice) -> None:
    plain = speak(voice, Wanted(TEXT, Params(seed=9)))[0]
    for changed in (
        {"temperature": 1.9},
        {"top_p": 0.05, "top_k": 3},
        {"top_k": 600, "top_p": 1.0, "temperature": 2.0},
        {"repetition_penalty": 10.0, "temperature": 1.0},
        {"speaker": CARL},
        {"speed": 2.0},
    ):
        assert speak(voice, Wanted(TEXT, Params(seed=9, **changed)))[0].codes != plain.codes, changed
        assert speak(voice, Wanted(TEXT, Params(seed=9)))[0].samples == plain.samples


def test_the_voice_s_own_speaker_given_as_a_code_is_the_same(voice: Voice) -> None:
    own = speak(voice, Wanted(TEXT, Params(seed=2)))[0]
    assert speak(voice, Wanted(TEXT, Params(seed=2, speaker=ANNA)))[0].samples == own.samples


def test_a_speaker_of_the_request_replaces_a_recording(bundle_path: Path, tmp_path: Path) -> None:
    import shutil

    from edged.compiler.chattts import people

    copy = tmp_path / "copy"
    shutil.copytree(bundle_path, copy)
    codes = speakers.encode_prompt(GENERATOR.integers(0, 625, (4, 20)))
    people.add(Bundle.load(copy), people.person("dora", prompt=codes, text="good morning"))
    anna, dora = open_bundle(Bundle.load(copy), settings.Engine(), Arena())
    try:
        own = speak(dora, Wanted(TEXT, Params()))[0]
        refined = speak(dora, Wanted(TEXT, REFINE))[0]
        assert refined.samples != own.samples
        given = speak(dora, Wanted(TEXT, Params(speaker=CARL)))[0]
        assert given.samples == speak(anna, Wanted(TEXT, Params(speaker=CARL)))[0].samples
        assert len(given.prompt) < len(own.prompt)
        assert speak(dora, Wanted(TEXT, Params()))[0].samples == own.samples
    finally:
        anna.close()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (CARL[:-3], "cut off"),
        ("hello", "cannot be part"),
        (speakers.encode_speaker(np.ones(HIDDEN + 1)), "this model needs 64"),
        (speakers.encode_prompt(np.ones((4, 9), np.int64)), "speaker"),
    ],
)
def test_a_bad_speaker_is_named_and_not_to_be_retried(code: str, says: str, voice: Voice) -> None:
    with pytest.raises(BadSpeaker) as caught:
        list(prepare(TEXT, voice.frontend, params=Params(speaker=code)))
    assert says in caught.value.message
    assert code[:5] in caught.value.message
    assert not caught.value.retryable


def test_an_immediate_ending_is_retried_so_many_times_whatever_the_request_asks(
    voice: Voice, synth: ChatSynthesizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = synth._generator
    run = generator.prompt
    noises: list[list[float]] = []

    def ending(row: int, ids: Any, text: Any, refine: bool = False) -> int:
        count = run(row, ids, text, refine)
        if not refine and count == len(ids):
            noises.append(generator._full["uniform"][row].tolist())
            generator.ended[row] = 1
        return count

    monkeypatch.setattr(generator, "prompt", ending)
    synth._sampling = data.Sampling(attempts=5)
    for params in (Params(temperature=0.01, top_k=1), replace(REFINE, temperature=5.0)):
        noises.clear()
        stream = synth.open(utterance(voice, TEXT, params), params)
        errors = [p.error for _ in range(400) for p in synth.step([stream]) if p.error is not None]
        synth.close(stream)
        assert isinstance(errors[0], EmptySpeech)
        assert len(noises) == len({tuple(noise) for noise in noises}) == 5


# -- in the daemon ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def daemon(bundle_path: Path) -> Iterator[Daemon]:
    with running(bundle_path) as started:
        yield started


def asked(daemon: Daemon, **fields: Any) -> dict[str, Any]:
    return daemon.request({"op": "synthesize", "format": "pcm_s16le", "text": TEXT, "seed": 3, **fields})


def test_the_refined_text_comes_to_both_kinds_of_socket_and_to_nobody_else(daemon: Daemon) -> None:
    with daemon.subscriber() as events, daemon.socket() as dealer:
        daemon.request({"op": "ping"})  # the subscription travels meanwhile
        assert events.poll(200) == 0
        whole = asked(daemon, refine=True, show_refined=True)
        send(
            dealer,
            op="synthesize",
            text=TEXT,
            seed=3,
            refine=True,
            show_refined=True,
            reply="events",
            format="pcm_s16le",
        )
        started, *_, done = receive_until(dealer, "started") + receive_until(dealer, "done", "failed")
        started = next(e for e in (started, *_) if e["event"] == "started")
        assert whole["event"] == done["event"] == "done"
        assert whole["refined"] == done["refined"]
        sentences = done["refined"].split("\n")
        assert len(sentences) == 2
        assert started["refined"] == sentences[0]
        published = []
        while events.poll(500):
            published.append(events.recv_multipart())
        assert {b"started", b"done"} <= {topic for topic, _ in published}
        for _, event in published:
            assert b'"refined":""' in event or b"refined" not in event
    for sentence in sentences:
        assert sentence not in daemon.log


def test_without_being_asked_no_text_is_told(daemon: Daemon) -> None:
    with daemon.socket() as dealer:
        send(dealer, op="synthesize", text=TEXT, seed=3, oral=2, reply="events", format="pcm_s16le")
        events = receive_until(dealer, "done", "failed")
    assert [e["event"] for e in events].count("started") == 1
    assert not any(e.get("refined") for e in events)
    plain = asked(daemon)
    assert plain["refined"] == ""
    assert b"".join(e.get("audio_bytes", b"") for e in events) != plain["audio_bytes"]


def test_a_speaker_does_not_leak_into_the_next_job(daemon: Daemon) -> None:
    own = asked(daemon)["audio_bytes"]
    other = asked(daemon, speaker=CARL)["audio_bytes"]
    assert other != own
    assert asked(daemon)["audio_bytes"] == own
    with daemon.socket() as dealer:  # and not into those beside it
        for number in range(4):
            extra = {"speaker": CARL} if number % 2 else {}
            send(dealer, op="synthesize", text=TEXT, seed=3, format="pcm_s16le", id=str(number), **extra)
        found = {reply["id"]: reply["audio_bytes"] for reply in (receive(dealer) for _ in range(4))}
    for number in range(4):
        pair = (found[str(number)], other if number % 2 else own)
        heard, expected = (np.frombuffer(audio, "<i2") for audio in pair)
        np.testing.assert_allclose(heard, expected, atol=4)


@pytest.mark.parametrize(
    ("fields", "code", "says"),
    [
        ({"speaker": CARL[:-3]}, "bad_speaker", "cut off"),
        ({"speaker": "x" * 8193}, "bad_value", "speaker: expected text of at most 8192 characters"),
        ({"temperature": 0}, "bad_value", "temperature: expected a number from 0.01 to 10"),
        ({"refine": False, "break": 2}, "bad_value", "break: "),
        ({"show_refined": True}, "bad_value", "show_refined: "),
    ],
)
def test_wrong_wishes_are_refused(fields: dict[str, Any], code: str, says: str, daemon: Daemon) -> None:
    answer = asked(daemon, **fields)
    assert (answer["event"], answer["code"], answer["retryable"]) == ("failed", code, False)
    assert says in answer["message"]


def test_a_voice_shows_its_controls_and_another_refuses_them(tone_bundle: Path, bundle_path: Path) -> None:
    defaults = {"anna": {"oral": 2, "temperature": 0.5}, "tone": {"speed": 2.0}}
    with running(bundle_path, tone_bundle, voices={"defaults": defaults}) as daemon:
        listed = {v["name"]: v["controls"] for v in daemon.request({"op": "voices"})["voices"]}
        assert listed["tone"] == ["speed", "seed"]
        assert {"speaker", "refine", "break", "top_k"} <= set(listed["anna"])
        refused = asked(daemon, voice="tone", temperature=0.3)
        assert refused["code"] == "bad_value"
        assert "'tone'" in refused["message"]
        # The configuration refines here, unless a request says otherwise.
        assert asked(daemon, show_refined=True)["refined"]
        plain = asked(daemon, refine=False, temperature=0.3)
        assert asked(daemon, refine=False)["audio_bytes"] != plain["audio_bytes"]
        fast, slow = (asked(daemon, voice="tone", **x)["audio_s"] for x in ({}, {"speed": 1.0}))
        assert fast == pytest.approx(slow / 2, rel=0.01)
    with running(bundle_path) as daemon:
        assert asked(daemon)["audio_bytes"] == plain["audio_bytes"]


@pytest.mark.parametrize(
    ("defaults", "says", "hint"),
    [
        ({"ton": VoiceDefaults(speed=2.0)}, "'ton' is in none of the loaded", "did you mean 'tone'?"),
        ({"tone": VoiceDefaults(top_k=3)}, "voices.defaults.tone.top_k: ", "speed, seed"),
        ({"tone": VoiceDefaults(break_=3)}, "voices.defaults.tone.break: ", "speed, seed"),
    ],
)
def test_a_default_that_cannot_be_stops_the_start(
    defaults: dict[str, VoiceDefaults], says: str, hint: str, tone_bundle: Path
) -> None:
    wanted = settings.Settings(voices=settings.Voices(bundles=[str(tone_bundle)], defaults=defaults))
    with pytest.raises(ConfigError) as caught:
        load_voices(wanted, sources(wanted), Arena(), lambda status: None)
    assert says in caught.value.message
    assert hint in caught.value.hint


def test_the_python_client(daemon: Daemon) -> None:
    with Client(daemon.endpoint) as client:
        seen: list[Any] = []
        whole = client.synthesize(TEXT, seed=3, break_=3, show_refined=True, on_event=seen.append)
        (started,) = [event for event in seen if isinstance(event, Started)]
        assert whole.done.refined.split("\n")[0] == started.refined != ""
        chunks = client.stream(TEXT, seed=3, speaker=CARL, format="pcm_s16le", temperature=0.5)
        audio = b"".join(chunk.data for chunk in chunks)
        assert (
            audio == client.synthesize(TEXT, seed=3, speaker=CARL, format="pcm_s16le", temperature=0.5).data
        )
        with pytest.raises(BadSpeaker):
            client.synthesize(TEXT, speaker="no")
        with pytest.raises(BadValue, match="laugh: expected a whole number from 0 to 2, got 3"):
            client.speak(TEXT, laugh=3)


def test_req_sockets_work_too(daemon: Daemon) -> None:
    with daemon.socket(zmq.REQ) as socket:
        send(socket, op="synthesize", text=TEXT, refine=True, show_refined=True)
        assert receive(socket)["refined"]


def test_the_command_line_shows_what_is_said(daemon: Daemon, tmp_path: Path) -> None:
    code = tmp_path / "carl.txt"
    code.write_text(f"{CARL}\n")

    command = [sys.executable, "-m", "edged", "--endpoint", daemon.endpoint, "say", TEXT, "--seed", "3"]
    expected = asked(daemon, show_refined=True, **{"break": 4}, speaker=CARL)
    options = ("--show-refined", "--break", "4", "--speaker", f"@{code}")
    told = subprocess.run(
        [*command, *options, "--out", str(tmp_path / "a.pcm")], capture_output=True, text=True, check=True
    )
    assert told.stdout == expected["refined"] + "\n"
    assert (tmp_path / "a.pcm").read_bytes() == expected["audio_bytes"]
    piped = subprocess.run([*command, *options, "--out", "-"], capture_output=True, check=True)
    assert piped.stdout.startswith(b"RIFF")
    assert expected["refined"] in piped.stderr.decode()
