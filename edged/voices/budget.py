"""The memory plan against `service.memory_mb`: refuses what is too much, and says what to lower.

Loading thread. Neighbours: `catalog` checks with it before anything is loaded, and again when everything
is; `demand` knows what a bundle takes with fewer slots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from edged import settings
from edged.bundle import Bundle
from edged.engine.plan import PlanRow, total_mb
from edged.errors import PlanTooLarge
from edged.voices.demand import demand, slots

PARTS = 4  # the largest parts of the plan, told in the message
WORK_MB = 16.0  # left free by what is advised: work arrays that are counted only when they are made
# The interpreter and the libraries, which are not in a plan but count for the watchdog: less than what was
# measured, as it shares pages with other processes. Left free by what is advised, too.
LIBRARIES_MB = 100.0


def check(
    rows: Sequence[PlanRow], most_mb: float, bundles: Sequence[Bundle], config: settings.Engine
) -> None:
    """Raises `PlanTooLarge`, which names the settings that would make the plan fit."""
    needed = total_mb(rows)
    if needed <= most_mb:
        return
    sums: dict[str, float] = {}
    for row in rows:
        name = row.name if row.kind == "bound" else f"{row.kind} of {row.name.rpartition('.')[0]}"
        sums[name] = sums.get(name, 0.0) + row.megabytes
    largest = sorted(sums.items(), key=lambda part: -part[1])[:PARTS]
    told = ", ".join(f"{name} {size:.1f} MB" for name, size in largest)
    ways = [*_fewer_slots(needed, most_mb, bundles, config)]
    if len(bundles) > 1:
        ways.append("load fewer voices.bundles")
    wanted = needed + WORK_MB + LIBRARIES_MB
    over = wanted - most_mb
    ways += [f"lower {r.name}" for r in rows if r.kind == "bound" and r.megabytes > over]
    ways.append(f"raise service.memory_mb to {math.ceil(wanted)} if the machine has that much")
    raise PlanTooLarge(
        f"the memory plan needs {needed:.1f} MB, service.memory_mb allows {most_mb:g} ({told})",
        ", or ".join(ways),
    )


def _fewer_slots(
    needed: float, most_mb: float, bundles: Sequence[Bundle], config: settings.Engine
) -> list[str]:
    """The highest `engine.slots` that fits; where none does, the bundle has to be built smaller."""
    now = sum(total_mb(demand(bundle, config)) for bundle in bundles)
    used = max((slots(bundle, config) for bundle in bundles), default=0)
    for fewer in range(used - 1, 0, -1):
        other = msgspec.structs.replace(config, slots=fewer)
        left = needed - now + sum(total_mb(demand(bundle, other)) for bundle in bundles)
        if left + WORK_MB + LIBRARIES_MB <= most_mb:
            return [f"set engine.slots to {fewer} (now {used}), which needs about {left:.0f} MB"]
    return ["build the bundle with fewer --positions or a lower --precision"] if used else []
