"""The client library against real daemons and real sockets."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import wave
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import zmq.auth

from edged import protocol
from edged.client import AsyncClient, Client, Curve
from edged.client.base import AudioOptions, SpeakOptions
from edged.errors import (
    BadValue,
    Busy,
    EdgedError,
    EmptyText,
    FrameTooLarge,
    JobCancelled,
    NoAudioDevice,
    NoDaemon,
    ReplyTimeout,
    UnknownJob,
    UnknownVoice,
)
from edged.protocol import AnyEvent
from tests.daemon import Daemon, running

SHORT = "Door open."
LONG = "This sentence is long enough to keep the voice busy. " * 40  # with the slow voice: many seconds


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with Client(daemon.endpoint) as made:
        yield made


@pytest.fixture(scope="module")
def slow_daemon(slow_bundle: Path) -> Iterator[Daemon]:
    with running(slow_bundle) as started:
        yield started


@pytest.fixture
def slow(slow_daemon: Daemon) -> Iterator[Client]:
    with Client(slow_daemon.endpoint) as made:
        yield made
        made.cancel(scope="all")


def eventually(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)


def idle(client: Client) -> Callable[[], bool]:
    return lambda: not client.status().jobs


def freeze(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, daemon.process.pid, os.WSTOPPED | os.WNOWAIT)


def no_daemon(endpoint: str, curve: Curve | None = None) -> tuple[NoDaemon, float]:
    start = time.monotonic()
    with Client(endpoint, curve=curve) as client, pytest.raises(NoDaemon) as caught:
        client.ping()
    return caught.value, time.monotonic() - start


# -- no daemon ----------------------------------------------------------------------------------


def test_a_missing_socket_is_no_daemon_at_once(tmp_path: Path) -> None:
    error, took_s = no_daemon(f"ipc://{tmp_path}/none.sock")
    assert "edged serve" in error.hint
    assert took_s < 0.5


def test_a_socket_nobody_listens_on_is_no_daemon_within_a_second(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(f"{tmp_path}/stale.sock")
    _, took_s = no_daemon(f"ipc://{tmp_path}/stale.sock")
    assert took_s < 1.5


def test_a_closed_port_is_no_daemon_within_a_second() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    _, took_s = no_daemon(f"tcp://127.0.0.1:{port}")
    assert took_s < 1.5


def test_an_endpoint_that_is_none_is_told() -> None:
    with pytest.raises(NoDaemon, match="cannot be used"):
        Client("somewhere")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_a_socket_of_another_user_says_so(daemon: Daemon) -> None:
    daemon.directory.chmod(0o755)
    script = (
        "import os, sys, edged.paths; from edged.client import Client\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "Client(sys.argv[1]).ping()"
    )
    done = subprocess.run([sys.executable, "-c", script, daemon.endpoint], capture_output=True, text=True)
    assert "this user may not use" in done.stderr
    assert "group" in done.stderr


def test_async_no_daemon(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient(f"ipc://{tmp_path}/none.sock") as client:
            with pytest.raises(NoDaemon):
                await client.ping()

    asyncio.run(main())


def test_importing_the_client_is_light() -> None:
    script = "import sys, edged.client; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"numpy", "onnxruntime", "rich", "yaml", "click", "psutil", "asyncio"} & set(
        done.stdout.split()
    )


# -- what the client refuses itself -------------------------------------------------------------


def test_a_request_above_the_limit_is_refused_before_it_is_sent(client: Client) -> None:
    with pytest.raises(FrameTooLarge):
        client.speak("x" * 300_000)
    client.ping()


def test_text_that_is_not_unicode_is_refused(client: Client) -> None:
    with pytest.raises(BadValue, match=r"^text: holds an unpaired surrogate.*replace"):
        client.speak("\udc80")
    with pytest.raises(BadValue, match=r"^voice: "):
        client.speak(SHORT, voice="\udc80")
    with pytest.raises(BadValue, match=r"^job: "):
        client.cancel(job="\udc80")
    with pytest.raises(BadValue, match=r"^client: "), Client(client.endpoint, name="\udc80") as other:
        other.speak(SHORT)


@pytest.mark.parametrize("endpoint", ["ipc:///tmp/\udc80", "ipc:///tmp/a\0b"])
def test_an_endpoint_that_cannot_be_an_address_is_refused(endpoint: str) -> None:
    with pytest.raises(BadValue, match="endpoint"):
        Client(endpoint)


def test_an_unknown_option_is_told_with_the_known_ones(client: Client) -> None:
    with pytest.raises(TypeError, match=r"speak\(\) has no option 'voise'; did you mean 'voice'\?") as caught:
        client.speak(SHORT, voise="tone")  # type: ignore[call-arg]
    assert "voice, markup, language" in str(caught.value)
    assert "speed, pitch, volume, seed, priority, deadline_ms, on_disconnect" in str(caught.value)
    assert "format" not in str(caught.value)
    with pytest.raises(TypeError, match=r"synthesize\(\) has no option 'id'.*format, sample_rate"):
        client.synthesize(SHORT, id="1")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"stream\(\) has no option 'rate'"):
        client.stream(SHORT, rate=8_000)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"stream\(\) has no option 'interrupt'"):
        client.stream(SHORT, interrupt=True)  # type: ignore[call-arg]
    assert set(SpeakOptions.__annotations__) <= {"break_", *protocol.Speak.__struct_fields__}
    assert set(AudioOptions.__annotations__) <= {"break_", *protocol.Synthesize.__struct_fields__}
    for kind in (Client, AsyncClient):
        assert all(name in str(kind.speak.__doc__) for name in SpeakOptions.__annotations__)
        for method in (kind.synthesize, kind.stream):
            assert "those of `speak`" in str(method.__doc__)


def test_how_a_text_is_read_is_sent_as_it_was_given(client: Client) -> None:
    done = client.synthesize(
        SHORT,
        language="en",
        markup="plain",
        numbers="en",
        digits="digits",
        emoji="skip",
        date_order="dmy",
        run_voices={"zh": "spell"},
    ).done
    assert (done.marks, done.skipped) == ([], 0)
    with pytest.raises(BadValue, match=r"languages\.zh\.top_k: expected a whole number from 1 to 1000"):
        client.synthesize(SHORT, languages={"zh": {"top_k": 0}})
    with pytest.raises(BadValue, match="languages: the voice 'tone' cannot be steered by it"):
        client.synthesize(SHORT, languages={"zh": {"top_k": 1}})
    with pytest.raises(BadValue, match=r"run_voices\.en: unknown voice 'nobody'"):
        client.synthesize(SHORT, run_voices={"en": "nobody"})


def test_shown_results_leave_the_audio_out(client: Client) -> None:
    assert "RIFF" not in repr(client.synthesize(SHORT))
    for shown in map(repr, client.stream(SHORT)):
        assert len(shown) < 200
        assert "\\x00" not in shown


FORKED = """
import asyncio, os, sys
from edged.client import AsyncClient, Client

async def asynchronous(endpoint):
    async with AsyncClient(endpoint) as client:
        await client.ping()
        stream = client.stream("Door open.")
        await stream.__anext__()
        if not (child := os.fork()):
            try:
                for call in (client.ping(), stream.__anext__()):
                    try:
                        await call
                    except RuntimeError as error:
                        assert "forked" in str(error), error
                    else:
                        os._exit(2)
                stream.close()
                client.close()
                os._exit(0)
            finally:
                os._exit(3)
        assert os.waitpid(child, 0)[1] == 0
        async for _ in stream:
            pass
        await client.ping()

with Client(sys.argv[1]) as client:
    stream = client.stream("Door open.")
    next(stream)
    if not (child := os.fork()):
        try:
            for call in (client.ping, lambda: next(stream)):
                try:
                    call()
                except RuntimeError as error:
                    assert "forked" in str(error), error
                else:
                    os._exit(2)
            stream.close()
            client.close()
            with Client(sys.argv[1]) as own:
                own.ping()
            os._exit(0)
        finally:
            os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
    assert list(stream)[-1].last
    client.ping()
asyncio.run(asynchronous(sys.argv[1]))
"""


def test_a_forked_child_is_told_to_make_its_own_client(daemon: Daemon) -> None:
    call = [sys.executable, "-c", FORKED, daemon.endpoint]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_client_in_two_threads_is_an_error(slow: Client) -> None:
    caught: list[BaseException] = []

    def other() -> None:
        try:
            slow.ping()
        except RuntimeError as exc:
            caught.append(exc)

    thread = threading.Timer(0.2, other)
    thread.start()
    slow.synthesize(LONG[:400])
    thread.join()
    assert "each thread" in str(caught[0])


def test_a_closed_client_says_so(daemon: Daemon) -> None:
    client = Client(daemon.endpoint)
    client.ping()
    client.close()
    client.close()
    with pytest.raises(NoDaemon, match="closed"):
        client.ping()


# -- one daemon, one client ---------------------------------------------------------------------


def test_questions(client: Client) -> None:
    assert client.ping().protocol == 1
    status = client.status()
    assert status.state == "ready"
    assert status.endpoint == client.endpoint
    assert [v.name for v in client.voices().voices if v.default] == ["tone"]
    assert client.stats().accepted >= 0


def test_speech_without_a_loudspeaker(client: Client) -> None:
    with pytest.raises(NoAudioDevice) as caught:
        client.speak(SHORT)
    assert caught.value.hint
    with pytest.raises(NoAudioDevice):
        client.speak(SHORT, wait=False)


def test_a_whole_synthesis(client: Client) -> None:
    result = client.synthesize(SHORT, sample_rate=16_000)
    assert (result.format, result.sample_rate) == ("wav", 16_000)
    with wave.open(io.BytesIO(result.data)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (1, 16_000, result.samples)
    assert result.duration_s == pytest.approx(result.done.audio_s, abs=0.01)
    assert result.done.sample_rate == 16_000


def test_the_stream_is_the_whole_in_pieces(client: Client) -> None:
    text = "One sentence. And another, which is longer than the first. " * 3
    whole = client.synthesize(text, format="pcm_s16le")
    stream = client.stream(text)
    chunks = list(stream)
    assert len(chunks) > 3
    assert b"".join(chunk.data for chunk in chunks) == whole.data
    assert [chunk.seq for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert sum(chunk.samples for chunk in chunks) == whole.samples
    assert {chunk.format for chunk in chunks} == {"pcm_s16le"}
    assert stream.done is not None
    assert stream.done.audio_s == whole.done.audio_s
    assert list(stream) == []


def test_events_come_in_order(client: Client) -> None:
    seen: list[AnyEvent] = []
    client.synthesize(SHORT, on_event=seen.append)
    assert [type(event).__name__ for event in seen] == ["Accepted", "Started", "Audio", "Done"]
    assert len({event.job for event in seen}) == 1


def test_refusals_are_their_exceptions(client: Client) -> None:
    seen: list[AnyEvent] = []
    with pytest.raises(UnknownVoice) as caught:
        client.synthesize(SHORT, voice="nobody", on_event=seen.append)
    assert "tone" in caught.value.hint
    assert [type(event).__name__ for event in seen] == ["Failed"]
    with pytest.raises(EmptyText):
        client.synthesize("")
    with pytest.raises(BadValue, match="speed"):
        client.synthesize(SHORT, speed=9.0)
    with pytest.raises(UnknownJob):
        client.cancel(job="none")


def test_a_refusal_that_could_not_name_its_request_reaches_it(tone_bundle: Path) -> None:
    with (
        running(tone_bundle, limits={"frame_kb": 1, "text_chars": 250}) as daemon,
        Client(daemon.endpoint) as client,
    ):
        with pytest.raises(EdgedError) as caught:
            client.synthesize("x" * 1_500)
        assert isinstance(caught.value, FrameTooLarge)
        client.ping()


# -- jobs that take their time ------------------------------------------------------------------


def test_leaving_a_stream_early_cancels(slow: Client) -> None:
    before = slow.stats().cancelled
    for _ in slow.stream(LONG):
        break
    gc.collect()
    eventually(idle(slow))
    assert slow.stats().cancelled == before + 1


def test_a_stream_as_context_manager_cancels(slow: Client) -> None:
    with slow.stream(LONG) as chunks:
        next(chunks)
        assert len(slow.status().jobs) == 1  # other calls work while a stream is open
    eventually(idle(slow))
    assert list(chunks) == []


def test_cancel_by_the_job_number(slow: Client, slow_daemon: Daemon) -> None:
    stream = slow.stream(LONG)
    next(stream)
    job = slow.status().jobs[0].job
    with Client(slow_daemon.endpoint) as other:
        assert other.cancel(job=job).jobs == [job]
    with pytest.raises(JobCancelled):
        list(stream)


def test_cancel_mine_reaches_the_clients_of_one_name(slow_daemon: Daemon) -> None:
    with (
        Client(slow_daemon.endpoint, name="app") as first,
        Client(slow_daemon.endpoint, name="app") as second,
        Client(slow_daemon.endpoint, name="other") as stranger,
    ):
        mine, foreign = first.stream(LONG), stranger.stream(LONG)
        next(mine)
        assert len(second.cancel(scope="mine").jobs) == 1
        with pytest.raises(JobCancelled):
            list(mine)
        next(foreign)
        foreign.close()
        eventually(idle(first))


def test_a_job_may_take_longer_than_the_timeout(slow_daemon: Daemon) -> None:
    with Client(slow_daemon.endpoint, timeout_s=1.0) as client:
        start = time.monotonic()
        client.synthesize(LONG[:1_500])
        assert time.monotonic() - start > 1.2


def test_a_full_queue_is_busy(slow_bundle: Path) -> None:
    with running(slow_bundle, limits={"jobs_per_client": 1}) as daemon, Client(daemon.endpoint) as client:
        with client.stream(LONG), pytest.raises(Busy) as caught:
            client.synthesize(SHORT)
        assert caught.value.retryable


def test_an_interrupt_cancels_the_job(slow: Client) -> None:
    def interrupt(event: AnyEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        slow.synthesize(LONG, on_event=interrupt)
    eventually(idle(slow))


def test_a_frozen_daemon_is_a_timeout(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, Client(daemon.endpoint, timeout_s=0.5) as client:
        stream = client.stream(LONG)
        next(stream)
        freeze(daemon)
        try:
            with pytest.raises(ReplyTimeout):
                client.ping()
            with pytest.raises(ReplyTimeout):
                list(stream)
            with Client(daemon.endpoint, timeout_s=1.2) as newcomer, pytest.raises(ReplyTimeout):
                newcomer.ping()
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        eventually(idle(client))


def test_a_dying_daemon_fails_the_call_at_once_and_its_successor_serves(slow_bundle: Path) -> None:
    with running(slow_bundle) as daemon, Client(daemon.endpoint) as client:
        stream = client.stream(LONG)
        next(stream)
        daemon.process.kill()
        start = time.monotonic()
        with pytest.raises(NoDaemon, match="closed the connection"):
            list(stream)
        assert time.monotonic() - start < 1.0
        daemon.process.wait()
        with pytest.raises(NoDaemon):
            client.ping()
        daemon.start()
        client.ping()


# -- many at once -------------------------------------------------------------------------------


def test_what_has_arrived_is_read_though_the_daemon_has_gone(tone_bundle: Path) -> None:
    """And what was asked in vain is not done by its successor."""
    with running(tone_bundle) as daemon, Client(daemon.endpoint) as client:
        stream = client.stream(SHORT)
        until = time.monotonic() + 20
        while "job done" not in daemon.log:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert daemon.stop() == 0
        assert b"".join(chunk.data for chunk in stream)
        assert stream.done is not None
        with pytest.raises(NoDaemon):
            client.synthesize(SHORT)
        daemon.start()
        assert client.stats().accepted == 0
        assert client.synthesize(SHORT).data


def test_many_concurrent_calls_on_one_socket(daemon: Daemon) -> None:
    texts = [f"This is text number {n}, of its own length{' and so on' * (n % 5)}." for n in range(30)]
    with Client(daemon.endpoint) as client:
        expected = [client.synthesize(text, format="pcm_s16le").data for text in texts]
    assert len(set(expected)) == len(expected)

    async def whole(client: AsyncClient, text: str) -> bytes:
        return (await client.synthesize(text, format="pcm_s16le")).data

    async def pieces(client: AsyncClient, text: str) -> bytes:
        return b"".join([chunk.data async for chunk in client.stream(text)])

    async def main() -> list[bytes]:
        async with AsyncClient(daemon.endpoint) as client:
            half = [whole(client, text) if n % 2 else pieces(client, text) for n, text in enumerate(texts)]
            return list(await asyncio.gather(*half))

    assert asyncio.run(main()) == expected


def test_two_clients_never_get_each_others_audio(daemon: Daemon) -> None:
    texts = ("The first client says this. " * 4, "While the second one says that. " * 5)
    with Client(daemon.endpoint) as a, Client(daemon.endpoint) as b:
        expected = [a.synthesize(text, format="pcm_s16le").data for text in texts]
        for _ in range(5):
            got = [b"", b""]
            streams = [a.stream(texts[0]), b.stream(texts[1])]
            open_streams = [0, 1]
            while open_streams:
                for n in list(open_streams):
                    try:
                        got[n] += next(streams[n]).data
                    except StopIteration:
                        open_streams.remove(n)
            assert got == expected


def test_a_cancelled_task_cancels_its_job(slow_daemon: Daemon) -> None:
    async def main() -> None:
        async with AsyncClient(slow_daemon.endpoint) as client:
            before = (await client.stats()).cancelled
            tasks = [asyncio.ensure_future(client.synthesize(LONG)) for _ in range(3)]
            while len((await client.status()).jobs) < 3:
                await asyncio.sleep(0.01)
            tasks[1].cancel()
            while len((await client.status()).jobs) > 2:
                await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            while (await client.status()).jobs:
                await asyncio.sleep(0.01)
            assert (await client.stats()).cancelled == before + 3

    asyncio.run(asyncio.wait_for(main(), 20))


def test_leaving_an_async_stream_early_cancels(slow_daemon: Daemon) -> None:
    async def main() -> None:
        async with AsyncClient(slow_daemon.endpoint) as client:
            async for _ in client.stream(LONG):
                break
            while (await client.status()).jobs:
                await asyncio.sleep(0.01)
            async with client.stream(LONG) as chunks:
                await chunks.__anext__()
            while (await client.status()).jobs:
                await asyncio.sleep(0.01)
            assert [chunk async for chunk in chunks] == []

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_blocked_event_loop_is_not_a_silent_daemon(slow_daemon: Daemon) -> None:
    async def main() -> None:
        async with AsyncClient(slow_daemon.endpoint, timeout_s=0.5) as client:
            await client.ping()
            task = asyncio.ensure_future(client.synthesize(SHORT))
            await asyncio.sleep(0.01)
            time.sleep(1.0)  # what an application should not do
            await task
            question = asyncio.ensure_future(client.status())
            await asyncio.sleep(0)
            time.sleep(1.0)  # what an application should not do
            await question

    asyncio.run(main())


def test_async_long_jobs_and_a_dying_daemon(slow_bundle: Path) -> None:
    async def main(daemon: Daemon) -> None:
        async with AsyncClient(daemon.endpoint, timeout_s=1.0) as client:
            await client.synthesize(LONG[:1_500])
            with pytest.raises(NoAudioDevice):
                await client.speak(SHORT)
            tasks = [asyncio.ensure_future(client.synthesize(LONG)) for _ in range(3)]
            while len((await client.status()).jobs) < 3:
                await asyncio.sleep(0.01)
            daemon.process.kill()
            results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 2)
            assert [type(result) for result in results] == [NoDaemon] * 3
            daemon.process.wait()
            daemon.start()
            await client.ping()

    with running(slow_bundle) as daemon:
        asyncio.run(asyncio.wait_for(main(daemon), 30))


# -- tcp with keys ------------------------------------------------------------------------------


def test_curve(tone_bundle: Path, tmp_path: Path) -> None:
    keys, known = tmp_path / "keys", tmp_path / "known"
    keys.mkdir()
    known.mkdir()
    for name in ("daemon", "app", "stranger"):
        zmq.auth.create_certificates(keys, name)
    (known / "app.key").write_bytes((keys / "app.key").read_bytes())
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
    listen = {"tcp": endpoint, "curve_secret": str(keys / "daemon.key_secret"), "curve_clients": str(known)}
    server = str(keys / "daemon.key")
    with running(tone_bundle, listen=listen) as daemon:
        with Client(endpoint, curve=Curve(server, str(keys / "app.key_secret"))) as client:
            assert client.synthesize(SHORT).samples > 0
        error, took_s = no_daemon(endpoint, Curve(server, str(keys / "stranger.key_secret")))
        assert "key" in error.hint
        assert took_s < 1.5
        told = [line for line in daemon.log.splitlines() if "code=unknown_key" in line]
        assert told
        assert all("address=127.0.0.1" in line for line in told)
        error, took_s = no_daemon(endpoint, Curve(str(keys / "app.key"), str(keys / "app.key_secret")))
        assert "key" in error.hint
        assert took_s < 1.5
    with pytest.raises(BadValue, match="key file"):
        Client(endpoint, curve=Curve(str(tmp_path / "none.key")))
    with pytest.raises(BadValue, match="no secret key"):
        Client(endpoint, curve=Curve(server, str(keys / "app.key")))
