"""The asyncio client: any number of concurrent calls on one socket of one event loop.

The loop watches the two descriptors of `connection`; every await below is on a call's own event. libzmq's
descriptor only signals changes, so `_pump` also runs after each send, which may have taken a signal in.
(zmq.asyncio would do the same for one socket, but not for socket and monitor in the needed order.)
Neighbours: `connection` (the socket), `results`. Not thread-safe, as asyncio objects are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from edged import protocol
from edged.client.base import AudioOptions, Base, ReadingOptions, Scope, SpeakOptions
from edged.client.call import Answer, Call, OnEvent
from edged.client.connection import FRAME_KB
from edged.client.endpoint import Curve
from edged.client.results import Chunk, Synthesis, checked, chunk, expect, join
from edged.controls import PriorityName
from edged.errors import EdgedError, UnknownJob
from edged.protocol import Accepted, Appended, Audio, Done, Explained

if TYPE_CHECKING:
    from typing_extensions import Unpack

E = TypeVar("E", bound=protocol.Event)


class AsyncClient(Base):
    """Speaks through a daemon from asyncio; see `Client` for the arguments and options.

    Cancelling the task that awaits a call cancels its job. Belongs to the event loop of its first call.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        timeout_s: float = 10.0,
        name: str = "",
        *,
        curve: Curve | None = None,
        frame_kb: int = FRAME_KB,
    ) -> None:
        super().__init__(endpoint, timeout_s, name, curve=curve, frame_kb=frame_kb)
        self._descriptors = [int(s.FD) for s in (self._connection.socket, self._connection.monitor)]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._linked = asyncio.Event()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the daemon. Jobs that still run end as their `on_disconnect` says."""
        if self._forked:  # the loop's selector is shared with the parent, which still listens
            return
        if self._loop is not None and not self._loop.is_closed() and not self._connection.closed:
            for descriptor in self._descriptors:
                self._loop.remove_reader(descriptor)
        self._connection.close()

    # -- speech ---------------------------------------------------------------------------------

    async def speak(
        self,
        text: str,
        *,
        wait: bool = True,
        on_event: OnEvent | None = None,
        **options: Unpack[SpeakOptions],
    ) -> Done | Accepted:
        """Speaks on the daemon's loudspeaker. Returns when it is spoken; `wait=False`: when accepted.

        Options (see `SpeakOptions`): voice, speed, pitch, volume, seed, priority, deadline_ms, on_disconnect,
        how the text is read (`ReadingOptions`): markup, language, numbers, digits, emoji, date_order,
        run_voices; and what else the voice has controls for: temperature, top_p, top_k, repetition_penalty,
        languages, refine, oral, laugh, break_, show_refined, speaker. When it is heard: interrupt, queue,
        replace, drop_if_busy, expires_ms, after_interrupt.
        """
        request = self._speak(text, wait, options)
        call = await self._send(request, long=wait)
        with self._ending(call):
            while True:
                event, _ = await self._next(call, on_event)
                if isinstance(event, Done) or (not wait and isinstance(event, Accepted)):
                    return event

    async def synthesize(
        self, text: str, *, on_event: OnEvent | None = None, **options: Unpack[AudioOptions]
    ) -> Synthesis:
        """The whole audio of the text, in `format` (wav unless given). Options: also those of `speak`."""
        request = self._synthesize(text, False, options)
        chunks: list[Chunk] = []
        call = await self._send(request, long=True)
        with self._ending(call):
            while True:
                event, data = await self._next(call, on_event)
                if isinstance(event, Audio):
                    chunks.append(chunk(event, data))
                elif isinstance(event, Done):
                    return join(chunks, event)

    def stream(
        self, text: str, *, on_event: OnEvent | None = None, **options: Unpack[AudioOptions]
    ) -> AsyncStream:
        """The audio in chunks as it is made, in `format` (pcm_s16le unless given).

        The request is sent at the first `anext`. Leaving the loop early cancels the job.
        Options: format, sample_rate, and those of `speak` but for when it is heard.
        """
        request = self._synthesize(text, True, options)
        return AsyncStream(self, request, on_event)

    def write(
        self, text: str = "", *, on_event: OnEvent | None = None, **options: Unpack[SpeakOptions]
    ) -> AsyncWriting:
        """Speaks a text that is still being written: what comes is heard sentence by sentence.

        The request is sent by `async with`. Only plain text. Options: those of `speak`.
        """
        return AsyncWriting(self, self._write(text, options), on_event)

    # -- everything else ------------------------------------------------------------------------

    async def explain(self, text: str, **options: Unpack[ReadingOptions]) -> Explained:
        """How the text would be spoken: what is left out, how it is read, where it is cut. Nothing is spoken.

        Options (see `ReadingOptions`): voice, markup, language, numbers, digits, emoji, date_order,
        run_voices.
        """
        return await self._ask(self._explain(text, options), Explained, long=True)

    async def cancel(self, job: str = "", target: str = "", scope: Scope = "job") -> protocol.CancelReply:
        """Cancels by the daemon's job number, by a request's id, or by scope."""
        request = self._cancel(job, target, scope)
        return await self._ask(request, protocol.CancelReply)

    async def pause(self, job: str = "", target: str = "", scope: Scope = "job") -> protocol.ControlReply:
        """Pauses speech, which goes on where it was, to the sample; see `cancel` for which."""
        return await self._ask(self._control("pause", job, target, scope), protocol.ControlReply)

    async def resume(self, job: str = "", target: str = "", scope: Scope = "job") -> protocol.ControlReply:
        """Ends `pause`."""
        return await self._ask(self._control("resume", job, target, scope), protocol.ControlReply)

    async def skip(self, job: str = "", target: str = "", scope: Scope = "job") -> protocol.ControlReply:
        """Ends the sentence that is being heard."""
        return await self._ask(self._control("skip", job, target, scope), protocol.ControlReply)

    async def volume(
        self, volume: float, job: str = "", target: str = "", scope: Scope = "all"
    ) -> protocol.ControlReply:
        """The volume, 0 to 4, of jobs, or (scope all) of the loudspeaker."""
        request = self._control("volume", job, target, scope, volume=volume)
        return await self._ask(request, protocol.ControlReply)

    async def mute(
        self, on: bool = True, job: str = "", target: str = "", scope: Scope = "all"
    ) -> protocol.ControlReply:
        """Silences jobs, or (scope all) the loudspeaker, while time goes on; on=False ends that."""
        request = self._control("mute" if on else "unmute", job, target, scope)
        return await self._ask(request, protocol.ControlReply)

    async def speed(
        self, speed: float, job: str = "", target: str = "", scope: Scope = "job"
    ) -> protocol.ControlReply:
        """The speed of jobs, 0.5 to 2, from the next sentence on."""
        request = self._control("speed", job, target, scope, speed=speed)
        return await self._ask(request, protocol.ControlReply)

    async def history(self, last: int = 20) -> protocol.HistoryReply:
        """What was heard on the loudspeaker lately, the last one first."""
        return await self._ask(protocol.History(id=self._id(), last=last), protocol.HistoryReply)

    async def repeat(self, job: str = "", *, priority: PriorityName | None = None) -> Done:
        """Speaks once more what was heard; see `Client.repeat`."""
        call = await self._send(self._repeat(job, priority), long=True)
        with self._ending(call):
            while not isinstance(event := (await self._next(call, None))[0], Done):
                pass
            return event

    async def status(self, memory: bool = False) -> protocol.StatusReply:
        """memory: with the memory plan."""
        return await self._ask(protocol.Status(id=self._id(), memory=memory), protocol.StatusReply)

    async def voices(self) -> protocol.VoicesReply:
        return await self._ask(protocol.Voices(id=self._id()), protocol.VoicesReply)

    async def stats(self) -> protocol.StatsReply:
        return await self._ask(protocol.Stats(id=self._id()), protocol.StatsReply)

    async def ping(self) -> protocol.Pong:
        return await self._ask(protocol.Ping(id=self._id()), protocol.Pong)

    async def reload(self) -> protocol.ReloadReply:
        """Makes the daemon read its configuration and bundles again; returns when the new ones are in use."""
        return await self._ask(protocol.Reload(id=self._id()), protocol.ReloadReply, long=True)

    # -- the socket -----------------------------------------------------------------------------

    async def _ask(self, request: protocol.Request, kind: type[E], long: bool = False) -> E:
        call = await self._send(request, long)
        with self._ending(call):
            return expect((await self._next(call, None))[0], kind)

    async def _send(self, request: protocol.Request, long: bool) -> _Call:
        self._check_process()
        header = self._connection.encode(request)
        self._connection.look()
        self._attach()
        self._pump()
        since = monotonic()
        while not self._connection.connected:
            await self._sleep(self._linked, self._connection.link(since))
            self._pump()
            self._connection.look()
        call = _Call(request.id, long)
        self._connection.send(call, header)
        self._pump()
        return call

    async def _next(self, call: _Call, on_event: OnEvent | None) -> Answer:
        """The next event of a call, waited for. A bad ending is raised, after on_event saw it."""
        self._check_process()
        call.since = monotonic()  # what the caller did in between is not the daemon's silence
        self._pump()
        while not call.answers:
            pause = self._connection.patience(call)
            self._pump()  # patience may have sent a ping
            if not call.answers:
                await self._sleep(call.ready, pause)
                self._pump()  # before the clock is asked: a blocked loop is not the daemon's silence
        answer = call.take()
        if on_event is not None:
            on_event(answer[0])
        checked(answer[0])
        return answer

    async def _sleep(self, event: asyncio.Event, seconds: float) -> None:
        """Until the event or the time. asyncio.wait_for may lose a cancellation before Python 3.12."""
        event.clear()
        timer = asyncio.get_running_loop().call_later(seconds, event.set)
        try:
            await event.wait()
        finally:
            timer.cancel()

    def _attach(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            for descriptor in self._descriptors:
                loop.add_reader(descriptor, self._pump)
        elif self._loop is not loop:
            raise RuntimeError("an edged AsyncClient belongs to the event loop of its first call")

    def _pump(self) -> None:
        self._connection.pump()
        self._linked.set()  # what waits for the connection looks again

    @contextmanager
    def _ending(self, call: _Call) -> Iterator[None]:
        try:
            yield
        finally:
            self._end(call)

    def _end(self, call: _Call) -> None:
        if not self._forked:
            self._connection.end(call)
            self._pump()


class _Call(Call):
    """A call whose task sleeps until an answer comes."""

    def __init__(self, id: str, long: bool) -> None:
        super().__init__(id, long)
        self.ready = asyncio.Event()

    def put(self, answer: Answer | EdgedError) -> None:
        super().put(answer)
        self.ready.set()


class AsyncStream(AsyncIterator[Chunk]):
    """Chunks of one job. `done` is the daemon's account of it once the last chunk was taken.

    As an async context manager it cancels on leaving, where an interpreter might collect it late.
    """

    def __init__(self, client: AsyncClient, request: protocol.Synthesize, on_event: OnEvent | None) -> None:
        self.done: Done | None = None
        self._client = client
        self._request = request
        self._on_event = on_event
        self._call: _Call | None = None
        self._open = True

    async def __anext__(self) -> Chunk:
        try:
            if self._open and self._call is None:
                self._call = await self._client._send(self._request, long=True)
            while self._open and self._call is not None:
                event, data = await self._client._next(self._call, self._on_event)
                if isinstance(event, Audio):
                    return chunk(event, data)
                if isinstance(event, Done):
                    self.done = event
                    self.close()
        except BaseException:
            self.close()
            raise
        raise StopAsyncIteration

    def close(self) -> None:
        """Cancels the job unless it has ended. Safe to call more than once."""
        if self._open:
            self._open = False
            if self._call is not None:
                self._client._end(self._call)

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The garbage collector may run in another thread, so the loop's own thread does the closing.
        loop, call = self._client._loop, self._call
        if self._open and call is not None and loop is not None and not self._client._forked:
            with suppress(RuntimeError):  # the loop is closed, and the connection with it
                loop.call_soon_threadsafe(self._client._end, call)


class AsyncWriting:
    """Speech of a text that comes in pieces, from `AsyncClient.write`; to be entered with `async with`.

    Neighbour: `Writing` of the other client, which it is like.
    """

    def __init__(self, client: AsyncClient, request: protocol.Speak, on_event: OnEvent | None) -> None:
        self.done: Done | None = None
        self._client = client
        self._request = request
        self._on_event = on_event
        self._call: _Call | None = None
        self._open = True

    async def append(self, text: str, flush: bool = False) -> int:
        """More text; see `Writing.append`."""
        return (await self._say(self._client._append(self._request.id, text, flush))).held

    async def close(self) -> None:
        """The text is complete; see `Writing.close`."""
        if self._open:
            self._open = False
            await self._say(self._client._complete(self._request.id))

    async def wait(self) -> Done:
        """Until all of it was heard."""
        assert self._call is not None, "enter it with: async with"
        await self.close()
        while self.done is None:
            event, _ = await self._client._next(self._call, self._on_event)
            if isinstance(event, Done):
                self.done = event
        self._client._end(self._call)
        return self.done

    def cancel(self) -> None:
        """Silence, unless it has ended."""
        self._open = False
        if self._call is not None:
            self._client._end(self._call)

    async def _say(self, request: protocol.Part) -> Appended:
        try:
            return await self._client._ask(request, Appended)
        except UnknownJob:
            self._open = False
            await self.wait()  # raises how it ended meanwhile
            raise

    async def __aenter__(self) -> AsyncWriting:
        self._call = call = await self._client._send(self._request, long=True)
        try:
            while not isinstance((await self._client._next(call, self._on_event))[0], Accepted):
                pass
        except BaseException:
            self.cancel()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.cancel()
            return
        try:
            await self.wait()
        except BaseException:
            self.cancel()
            raise
