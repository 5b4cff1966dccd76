"""Run by test_alloc_probe.py under the probe: speaks on a thread named like the daemon's engine thread.

usage: allocating.py COUNTS MODE [BUNDLE]   MODE: numpy | steps. Prints large requests of that thread.
"""

from __future__ import annotations

import ctypes
import random
import sys
import threading
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import alloc_probe

from edged import settings
from edged.bundle import Bundle
from edged.engine.buffers import Arena
from edged.job import Params
from edged.text.prepare import prepare
from edged.voices.load import open_bundle

TEXTS = 60
LENGTHS = (1, 2, 5, 9, 20, 60, 90)  # words
THREAD = "edged-engine"
PR_SET_NAME = 15
WORDS = """pressure in tank number four is above limit close valve wait for green light before you
restart Zaragoza pump 1,250 litres left at 7:30 a Qwyxl failure read live records now"""


def on_engine_thread(work: object) -> None:
    def run() -> None:
        ctypes.CDLL(None).prctl(PR_SET_NAME, THREAD.encode(), 0, 0, 0)
        work()  # type: ignore[operator]

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def counts(file: Path) -> alloc_probe.Counts:
    return alloc_probe.read(file).get(THREAD, alloc_probe.Counts())


def main() -> None:
    file, mode = Path(sys.argv[1]), sys.argv[2]
    if mode == "numpy":
        on_engine_thread(lambda: np.ones(1 << 20, np.uint8))
        print(counts(file).heap)
        return
    bundle = Bundle.load(Path(sys.argv[3]))
    arena = Arena()
    (voice,) = open_bundle(bundle, settings.Engine(), arena)
    generator = random.Random(7)
    words, prepared = WORDS.split(), []
    for n in range(TEXTS):
        text = " ".join(generator.choice(words) for _ in range(generator.choice(LENGTHS)))
        params = Params(speed=generator.choice((0.5, 0.8, 1.0, 1.3, 2.0)), seed=n)
        prepared += [(utterance, params) for utterance in prepare(text, voice.frontend, params=params)]
    seen: list[alloc_probe.Counts] = []

    def serve() -> None:
        voice.warm_up()
        seen.append(counts(file))
        for utterance, params in prepared:
            stream = voice.synthesizer.open(utterance, params)
            while not voice.synthesizer.step([stream])[0].last:
                pass
            voice.synthesizer.close(stream)
        seen.append(counts(file))

    on_engine_thread(serve)
    grown = seen[1] - seen[0]
    print(grown.heap, grown.maps, len(prepared), seen[0].heap)


if __name__ == "__main__":
    main()
