"""Measuring processes that take turns: each has its own memory and runtime, and only one works at a time.

Machines drift, so what is to be compared is measured alternately in one run; runtimes disturb each other, so
each has a process of its own, which sleeps on its standard input until its turn comes. One JSON line asks,
one answers. The parent uses `Turns`; the script that it starts ends with `answer(...)`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.common import ROOT, environment

HERE = Path(__file__).parent


class Lost(RuntimeError):
    """The measuring process ended by itself; a peer's may be done without."""


class Turns:
    """The parent's side. script: the name of a module beside this one; python: the interpreter it needs."""

    def __init__(self, script: str, *arguments: object, python: str = sys.executable) -> None:
        paths = [str(ROOT), str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._name = script
        self._process = subprocess.Popen(
            [python, str(HERE / f"{script}.py"), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment(), "PYTHONPATH": os.pathsep.join(paths)},
            text=True,
        )
        self.about: dict[str, Any] = self._read()

    def __call__(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # reading tells how it ended
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Lost(f"the measuring process {self._name} ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Turns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def answer(prepare: Callable[[Sequence[str]], tuple[dict[str, Any], Callable[..., dict[str, Any]]]]) -> None:
    """The child's side. prepare: arguments -> (what to tell the parent, the measurement for a request)."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print what they like
    about, measure = prepare(sys.argv[1:])
    print(json.dumps(about), file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(**json.loads(line))), file=replies, flush=True)
