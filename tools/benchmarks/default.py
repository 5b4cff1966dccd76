"""`tools/bench default`: the built-in English voice through a real daemon, beside its own package.

The figures are described in tools/bench. Neighbours: `common.py`, and `alloc_probe.py` in the folder above.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import alloc_probe

from benchmarks.common import THREADS, Daemon, Say, daemon, machine, spread, varied
from edged.client import Client

WARM_UP = 200  # requests
TEN_WORDS = "The pump on line four has stopped, please check it."
SENTENCES = [
    TEN_WORDS,
    "Temperature is back to normal.",
    "Batch seventeen has been released by quality control and can be loaded on truck three.",
    "Attention please, the east gate will be closed for maintenance from nine until half past eleven.",
    "The quick brown fox jumps over the lazy dog.",
]


def measure(quick: bool, say: Say) -> dict[str, Any]:
    rounds = 5 if quick else 20
    requests = 200 if quick else 1000
    with tempfile.TemporaryDirectory(prefix="edged-bench-") as folder:
        bundle = Path(folder, "hibari")
        say("building the bundle")
        subprocess.run(
            [sys.executable, "-m", "edged", "bundle", "build", "hibari", "--out", str(bundle)],
            check=True,
            capture_output=True,
        )
        say("start to ready")
        starts = []
        for _ in range(3 if quick else 7):
            with daemon(bundle) as started:
                starts.append(started.ready_s)
        with daemon(bundle) as running:
            client = running.client
            rss = running.rss_mb()
            say("real-time factor, in turn with the package itself")
            rtf, ratio = measure_rtf(client, rounds)
            say("first audio")
            first = [measure_first_audio(client, seed) for seed in range(10 * rounds)]
            say(f"memory over {requests} requests")
            growth = measure_growth(running, requests)
        say("the daemon's own share")
        with daemon(bundle) as running:
            client = running.client
            # The percentiles are taken over the last 1,024 jobs: the first, cold ones have left by then.
            for seed in range(60 * rounds):
                client.synthesize(TEN_WORDS, seed=seed)
            share = client.stats().overhead_ms
        say("allocations on the engine thread")
        large = measure_allocations(bundle, 60 if quick else 300)
    return {
        "rtf": spread(rtf)["median"],
        "rtf_over_direct": spread(ratio)["median"],
        "first_audio_ms": spread(first)["median"],
        "daemon_p99_ms": share.p99,
        "ready_s": spread(starts)["median"],
        "rss_mb": round(rss, 1),
        "growth_mb": round(growth, 2),
        "large_allocations": large,
        "spread": {
            "rtf": spread(rtf),
            "rtf_over_direct": spread(ratio),
            "first_audio_ms": spread(first),
            "daemon_share_ms": {"p50": share.p50, "p90": share.p90, "p99": share.p99, "count": share.count},
            "ready_s": spread(starts),
        },
        "requests": requests,
        "threads": THREADS,
        "machine": machine(),
    }


def measure_rtf(client: Client, rounds: int) -> tuple[list[float], list[float]]:
    """Per sentence and round: the client's real-time factor, and its ratio to the direct call's."""
    import onnxruntime
    from hibari import Hibari

    direct = Hibari(threads=THREADS)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    # Idle threads of this session must not spin while the daemon is measured.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    direct.sess = onnxruntime.InferenceSession(direct.model_path, options, providers=["CPUExecutionProvider"])
    through, ratios = [], []
    for round_ in range(rounds + 2):
        for text in SENTENCES:
            begin = time.perf_counter()
            reply = client.synthesize(text, seed=round_, format="pcm_f32le")
            middle = time.perf_counter()
            audio = direct(text, seed=round_)
            end = time.perf_counter()
            if round_ >= 2:  # the first two rounds warm both up
                mine = (middle - begin) / (reply.samples / reply.sample_rate)
                theirs = (end - middle) / (len(audio) / direct.sample_rate)
                through.append(mine)
                ratios.append(mine / theirs)
    return through, ratios


def measure_first_audio(client: Client, seed: int) -> float:
    begin = time.perf_counter()
    with client.stream(TEN_WORDS, seed=seed) as stream:
        next(stream)
        first = time.perf_counter() - begin
        for _ in stream:
            pass
    return first * 1e3


def measure_growth(running: Daemon, requests: int) -> float:
    def ask(count: int, seed: int) -> None:
        for number, text in enumerate(varied(count, seed)):
            running.client.synthesize(
                text,
                seed=number,
                speed=0.8 + 0.4 * (number % 5) / 4,
                format=("wav", "flac", "pcm_s16le", "ogg_opus")[number % 4],
            )

    ask(WARM_UP, seed=1)
    before = running.rss_mb()
    ask(requests, seed=2)
    return running.rss_mb() - before


def measure_allocations(bundle: Path, requests: int) -> int | None:
    """Large allocations of the engine thread; null where there is no C compiler."""
    with tempfile.TemporaryDirectory(prefix="edged-bench-") as folder:
        counts = Path(folder, "counts")
        try:
            library = alloc_probe.build(Path(folder))
        except alloc_probe.ProbeUnavailable:
            return None

        def so_far() -> int:
            count = alloc_probe.read(counts).get("edged-engine", alloc_probe.Counts())
            return count.heap + count.maps

        with daemon(bundle, alloc_probe.environment(library, counts)) as running:
            for text in varied(30, seed=3):
                running.client.synthesize(text)
            before = so_far()
            for text in varied(requests, seed=4):
                running.client.synthesize(text)
            return so_far() - before
