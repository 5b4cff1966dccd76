"""The synchronous client. It has no thread of its own: the caller's thread waits on the socket.

A `Client` is for one thread at a time and says so when two use it at once; make one Client a thread
(they are cheap). Calls may overlap within that thread: while a stream is open, `cancel` and `status`
work and the stream's chunks wait. Neighbours: `connection` (the socket), `results`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

import zmq

from edged import protocol
from edged.client.base import AudioOptions, Base, ReadingOptions, Scope, SpeakOptions
from edged.client.call import Answer, Call, OnEvent
from edged.client.connection import FRAME_KB
from edged.client.endpoint import Curve
from edged.client.results import Chunk, Synthesis, checked, chunk, expect, join
from edged.controls import PriorityName
from edged.errors import UnknownJob
from edged.protocol import Accepted, Appended, Audio, Done, Explained

if TYPE_CHECKING:
    from typing_extensions import Unpack

E = TypeVar("E", bound=protocol.Event)
RELOAD_S = 300.0  # a large voice on a slow disk takes a part of it


class Client(Base):
    """Speaks through a daemon. Connects in the background; the first call waits for it.

    endpoint: None means $EDGED_ENDPOINT or the default socket of this machine. timeout_s: how long the
    daemon may be silent; a long job is not silence. name: jobs of the same name and user can be
    cancelled together, from any connection, with `cancel(scope="mine")`. Options of speech are those
    of `SpeakOptions` and `AudioOptions`; `on_event` is called with each event of the job as it comes.
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
        self._poller = zmq.Poller()
        self._poller.register(self._connection.socket, zmq.POLLIN)
        self._poller.register(self._connection.monitor, zmq.POLLIN)
        self._lock = Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the daemon. Jobs that still run end as their `on_disconnect` says."""
        if not self._forked:
            self._connection.close()

    # -- speech ---------------------------------------------------------------------------------

    def speak(
        self,
        text: str,
        *,
        wait: bool = True,
        on_event: OnEvent | None = None,
        **options: Unpack[SpeakOptions],
    ) -> Done | Accepted:
        """Speaks on the daemon's loudspeaker. Returns when it is spoken; `wait=False`: when accepted.

        Ctrl-C or any other exception while waiting cancels the job. Options (see `SpeakOptions`):
        voice, speed, pitch, volume, seed, priority, deadline_ms, on_disconnect,
        how the text is read (`ReadingOptions`): markup, language, numbers, digits, emoji, date_order,
        run_voices; and what else the voice has controls for: temperature, top_p, top_k, repetition_penalty,
        languages, refine, oral, laugh, break_, show_refined, speaker. When it is heard: interrupt, queue,
        replace, drop_if_busy, expires_ms, after_interrupt.
        """
        request = self._speak(text, wait, options)
        call = self._send(request, long=wait)
        with self._ending(call):
            while True:
                event, _ = self._next(call, on_event)
                if isinstance(event, Done) or (not wait and isinstance(event, Accepted)):
                    return event

    def synthesize(
        self,
        text: str,
        *,
        on_event: OnEvent | None = None,
        within_s: float = math.inf,
        **options: Unpack[AudioOptions],
    ) -> Synthesis:
        """The whole audio of the text, in `format` (wav unless given).

        within_s: when it takes longer the job is cancelled and `ReplyTimeout` raised.
        Options: format, sample_rate, and those of `speak` but for when it is heard.
        """
        request = self._synthesize(text, False, options)
        chunks: list[Chunk] = []
        call = self._send(request, long=True, within_s=within_s)
        with self._ending(call):
            while True:
                event, data = self._next(call, on_event)
                if isinstance(event, Audio):
                    chunks.append(chunk(event, data))
                elif isinstance(event, Done):
                    return join(chunks, event)

    def stream(
        self, text: str, *, on_event: OnEvent | None = None, **options: Unpack[AudioOptions]
    ) -> Stream:
        """The audio in chunks as it is made, in `format` (pcm_s16le unless given).

        The request is sent now, not at the first `next`. Leaving the loop early cancels the job.
        Options: format, sample_rate, and those of `speak` but for when it is heard.
        """
        request = self._synthesize(text, True, options)
        return Stream(self, self._send(request, long=True), on_event)

    def write(
        self, text: str = "", *, on_event: OnEvent | None = None, **options: Unpack[SpeakOptions]
    ) -> Writing:
        """Speaks a text that is still being written: what comes is heard sentence by sentence.

        Only plain text. Options: those of `speak`.
        """
        request = self._write(text, options)
        call = self._send(request, long=True)
        try:
            while not isinstance(self._next(call, on_event)[0], Accepted):
                pass
        except BaseException:
            self._end(call)
            raise
        return Writing(self, call, on_event)

    # -- everything else ------------------------------------------------------------------------

    def explain(self, text: str, **options: Unpack[ReadingOptions]) -> Explained:
        """How the text would be spoken: what is left out, how it is read, where it is cut. Nothing is spoken.

        Options (see `ReadingOptions`): voice, markup, language, numbers, digits, emoji, date_order,
        run_voices.
        """
        return self._ask(self._explain(text, options), Explained, long=True)

    def cancel(self, job: str = "", target: str = "", scope: Scope = "job") -> protocol.CancelReply:
        """Cancels by the daemon's job number, by a request's id, or by scope."""
        request = self._cancel(job, target, scope)
        return self._ask(request, protocol.CancelReply)

    def pause(self, job: str = "", target: str = "", scope: Scope = "job") -> protocol.ControlReply:
        """Pauses speech, which goes on where it was, to the sample; see `cancel` for which."""
        return self._ask(self._control("pause", job, target, scope), protocol.ControlReply)

    def resume(self, job: str = "", target: str = "", scope: Scope = "job") -> protocol.ControlReply:
        """Ends `pause`."""
        return self._ask(self._control("resume", job, target, scope), protocol.ControlReply)

    def skip(self, job: str = "", target: str = "", scope: Scope = "job") -> protocol.ControlReply:
        """Ends the sentence that is being heard."""
        return self._ask(self._control("skip", job, target, scope), protocol.ControlReply)

    def volume(
        self, volume: float, job: str = "", target: str = "", scope: Scope = "all"
    ) -> protocol.ControlReply:
        """The volume, 0 to 4, of jobs, or (scope all) of the loudspeaker."""
        request = self._control("volume", job, target, scope, volume=volume)
        return self._ask(request, protocol.ControlReply)

    def mute(
        self, on: bool = True, job: str = "", target: str = "", scope: Scope = "all"
    ) -> protocol.ControlReply:
        """Silences jobs, or (scope all) the loudspeaker, while time goes on; on=False ends that."""
        request = self._control("mute" if on else "unmute", job, target, scope)
        return self._ask(request, protocol.ControlReply)

    def speed(
        self, speed: float, job: str = "", target: str = "", scope: Scope = "job"
    ) -> protocol.ControlReply:
        """The speed of jobs, 0.5 to 2, from the next sentence on."""
        request = self._control("speed", job, target, scope, speed=speed)
        return self._ask(request, protocol.ControlReply)

    def history(self, last: int = 20) -> protocol.HistoryReply:
        """What was heard on the loudspeaker lately, the last one first."""
        return self._ask(protocol.History(id=self._id(), last=last), protocol.HistoryReply)

    def repeat(self, job: str = "", *, priority: PriorityName | None = None) -> Done:
        """Speaks once more what was heard: the job with that number, or the last one. Returns when it was
        heard. The daemon needs `speech.history_texts` for it."""
        call = self._send(self._repeat(job, priority), long=True)
        with self._ending(call):
            while not isinstance(event := self._next(call, None)[0], Done):
                pass
            return event

    def status(self, memory: bool = False) -> protocol.StatusReply:
        """memory: with the memory plan."""
        return self._ask(protocol.Status(id=self._id(), memory=memory), protocol.StatusReply)

    def voices(self) -> protocol.VoicesReply:
        return self._ask(protocol.Voices(id=self._id()), protocol.VoicesReply)

    def stats(self) -> protocol.StatsReply:
        return self._ask(protocol.Stats(id=self._id()), protocol.StatsReply)

    def ping(self) -> protocol.Pong:
        return self._ask(protocol.Ping(id=self._id()), protocol.Pong)

    def reload(self, within_s: float = RELOAD_S) -> protocol.ReloadReply:
        """Makes the daemon read its configuration and bundles again; returns when the new ones are in use.

        within_s: after so long `ReplyTimeout` is raised; the daemon may still take them over.
        """
        return self._ask(protocol.Reload(id=self._id()), protocol.ReloadReply, long=True, within_s=within_s)

    # -- the socket -----------------------------------------------------------------------------

    def _ask(
        self, request: protocol.Request, kind: type[E], long: bool = False, within_s: float = math.inf
    ) -> E:
        call = self._send(request, long, within_s)
        with self._ending(call):
            return expect(self._next(call, None)[0], kind)

    def _send(self, request: protocol.Request, long: bool, within_s: float = math.inf) -> Call:
        header = self._connection.encode(request)
        call = Call(request.id, long, within_s)
        with self._turn():
            self._connection.look()
            self._connection.pump()
            since = monotonic()
            while not self._connection.connected:
                self._poller.poll(_ms(self._connection.link(since)))
                self._connection.pump()
            self._connection.send(call, header)
        return call

    def _next(self, call: Call, on_event: OnEvent | None) -> Answer:
        """The next event of a call, waited for. A bad ending is raised, after on_event saw it."""
        call.since = monotonic()  # what the caller did in between is not the daemon's silence
        with self._turn():
            while not call.answers:
                self._connection.pump()
                if not call.answers:
                    self._poller.poll(_ms(self._connection.patience(call)))
            answer = call.take()
        if on_event is not None:
            on_event(answer[0])
        checked(answer[0])
        return answer

    @contextmanager
    def _ending(self, call: Call) -> Iterator[None]:
        try:
            yield
        finally:
            self._end(call)

    def _end(self, call: Call) -> None:
        if not self._forked:
            with self._turn():
                self._connection.end(call)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        self._check_process()
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("two threads use one edged Client at once: make a Client for each thread")
        try:
            yield
        finally:
            self._lock.release()


def _ms(seconds: float) -> int:
    return int(seconds * 1000) + 1  # rounded up: zero would spin


class Stream(Iterator[Chunk]):
    """Chunks of one job. `done` is the daemon's account of it once the last chunk was taken.

    As a context manager it cancels on leaving, where an interpreter might collect it late.
    """

    def __init__(self, client: Client, call: Call, on_event: OnEvent | None) -> None:
        self.done: Done | None = None
        self._client = client
        self._call = call
        self._on_event = on_event
        self._open = True

    def __next__(self) -> Chunk:
        while self._open:
            try:
                event, data = self._client._next(self._call, self._on_event)
            except BaseException:
                self.close()
                raise
            if isinstance(event, Audio):
                return chunk(event, data)
            if isinstance(event, Done):
                self.done = event
                self.close()
        raise StopIteration

    def close(self) -> None:
        """Cancels the job unless it has ended. Safe to call more than once."""
        if self._open:
            self._open = False
            self._client._end(self._call)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The garbage collector may run in a thread that must not wait for, or touch, a busy socket;
        # the daemon then cancels the job when the Client closes.
        with suppress(RuntimeError, zmq.ZMQError):
            self.close()


class Writing:
    """Speech of a text that comes in pieces, from `Client.write`. `done`: the daemon's account of it.

        with client.write(priority="message") as writing:
            for token in model:
                writing.append(token)

    Leaving the block waits until all was heard; an exception in it cancels.
    """

    def __init__(self, client: Client, call: Call, on_event: OnEvent | None) -> None:
        self.done: Done | None = None
        self._client = client
        self._call = call
        self._on_event = on_event
        self._open = True

    def append(self, text: str, flush: bool = False) -> int:
        """More text. flush: nothing of it waits for the end of its sentence; without, the characters that do
        are returned. Raises what refuses the piece, which then counts as never sent."""
        return self._say(self._client._append(self._call.id, text, flush)).held

    def close(self) -> None:
        """The text is complete. Raises what refuses the last piece; the rest is spoken all the same."""
        if self._open:
            self._open = False
            self._say(self._client._complete(self._call.id))

    def wait(self) -> Done:
        """Until all of it was heard."""
        self.close()
        while self.done is None:
            event, _ = self._client._next(self._call, self._on_event)
            if isinstance(event, Done):
                self.done = event
        self._client._end(self._call)
        return self.done

    def cancel(self) -> None:
        """Silence, unless it has ended."""
        self._open = False
        self._client._end(self._call)

    def _say(self, request: protocol.Part) -> Appended:
        try:
            return self._client._ask(request, Appended)
        except UnknownJob:
            self._open = False
            self.wait()  # raises how it ended meanwhile
            raise

    def __enter__(self) -> Writing:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.cancel()
            return
        try:
            self.wait()
        except BaseException:
            self.cancel()
            raise
