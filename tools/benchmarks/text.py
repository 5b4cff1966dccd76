"""`tools/bench text`: the readers of languages, alone and in the whole way of a text to its utterances: each
kind of text in a fresh process. Time of the clock, and of the processor, which other processes do not take.

The figures are described in tools/bench. Run as a program it measures one kind in its own process.
Neighbours: `common.py`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LETTERS = 200  # characters of a short text
LONG = 20_000  # of a long one
TEXTS = {
    "en": (
        "Pump 2 outlet pressure is 0.35 MPa, below the set point of 0.4 MPa. Please check it by 2026-12-01. "
        "The next shift begins at 14:30; call 555-0199 if the alarm E-0307 is still on at that time. "
    ),
    "zh": (
        "2号泵出口压力0.35MPa，低于设定值0.4MPa，请于2026-12-01前检查。夜班14:30开始，如报警代码E-0307仍在，"
        "请拨打电话010-12345678联系维修人员。今天良品率98.5%，产量1204件。"
    ),
    "mixed": (
        "请注意。Door 3 is open. 打开 Dashboard 页面3，Zone A温度20-30℃。The pressure is 0.6 MPa now. "
        "压力0.6 MPa，PLC离线，请联系 ops@example.com 或拨打4417。"
    ),
    "figures": (
        "12:30 4.5 kW 3/4 98% 2026-05-01 192.168.0.10 M12x1.75 $5.30 -40 °C 1e-3 5x7 10-20 mA SN: A1B2-00417 "
        "#5 v2.1.3 555-0199 "
    ),
}


def measure(quick: bool, say: Any) -> dict[str, dict[str, Any]]:
    """A column a kind of text."""
    from benchmarks.common import environment, machine

    columns = {}
    for kind in TEXTS:
        say(f"texts of kind {kind}")
        command = [sys.executable, str(Path(__file__).resolve()), kind, str(40 if quick else 200)]
        done = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)
        columns[kind] = {**json.loads(done.stdout), "machine": machine()}
    return columns


def figures(kind: str, rounds: int) -> dict[str, Any]:
    """Of this process, which must not have loaded any reader before."""
    before = pss_mb()
    begin = time.perf_counter()
    spans = reader(kind)
    spans(TEXTS[kind])
    load = time.perf_counter() - begin
    added = pss_mb() - before
    wall, cpu = times(spans, repeated(kind, LETTERS), rounds)
    long = min(times(spans, repeated(kind, LONG), 3)[1])
    prepared = times(preparer(kind), repeated(kind, LETTERS), rounds)[1]
    return {
        "median_ms": round(statistics.median(wall), 2),
        "p95_ms": round(wall[int(0.95 * (len(wall) - 1))], 2),
        "cpu_ms": round(statistics.median(cpu), 2),
        "prepare_cpu_ms": round(statistics.median(prepared), 2),
        "long_ms_per_kb": round(long / (len(repeated(kind, LONG).encode()) / 1000), 2),
        "load_ms": round(1000 * load, 1),
        "added_mb": round(added, 1),
    }


def reader(kind: str) -> Any:
    """What finds the spans of a text of this kind; only the readers that it needs are loaded."""
    from edged.text.english import English
    from edged.text.span import Options

    if kind == "en":
        english = English()
        return lambda text: english.spans(text, Options())
    from edged.text.chinese.reader import Chinese
    from edged.text.runs import MixedReader

    mixed = MixedReader({"zh": Chinese(), "en": English()})
    return lambda text: mixed.spans(text, Options())


def repeated(kind: str, size: int) -> str:
    text = TEXTS[kind]
    return (text * (size // len(text) + 1))[:size]


def preparer(kind: str) -> Any:
    """What makes utterances of a text of this kind, for a voice that costs nothing itself."""
    from edged.text.languages import readings_of
    from edged.text.prepare import prepare
    from edged.voices.tone.frontend import ToneFrontend

    voice = ToneFrontend(LETTERS, ("en",) if kind == "en" else ("zh", "en"))
    readings = readings_of([voice])
    return lambda text: list(prepare(text, voice, readings=readings))


def times(work: Any, text: str, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds of the clock and of the processor, each in ascending order."""
    wall, cpu = [], []
    for _ in range(rounds):
        begin, used = time.perf_counter(), time.process_time()
        work(text)
        cpu.append(1000 * (time.process_time() - used))
        wall.append(1000 * (time.perf_counter() - begin))
    return sorted(wall), sorted(cpu)


def pss_mb() -> float:
    """Proportional set size of this process."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1000
    raise RuntimeError("the kernel names no proportional set size")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    print(json.dumps(figures(sys.argv[1], int(sys.argv[2]))))
