"""What a bundle will take of memory, by its manifest alone: so that too much is refused before it is loaded.

Loading thread. Work arrays of the families are not in it; they are small, and counted when they are made.
Neighbours: `budget` compares it with what is allowed, `chattts/voice.py` opens with the same limit of rows.
"""

from __future__ import annotations

from dataclasses import replace

from edged import settings
from edged.bundle import Bundle
from edged.engine.api import TensorSpec
from edged.engine.plan import PlanRow, buffer_row, device_row, weights_row
from edged.manifest import EngineFile

# Engines that a bundle may carry for building, checking and enrolling; the daemon never loads them.
_UNSERVED = {"chattts": ("encoder", "codes")}
_SLOTTED = {"chattts": "gpt"}  # the engine whose tensors have a row for each slot


def slots(bundle: Bundle, config: settings.Engine) -> int:
    """How many utterances at once: as many as the bundle was built for, or fewer by `engine.slots`; 0 when
    this family has no slots."""
    built = _built(bundle)
    return min(built, config.slots or built)


def interface(
    bundle: Bundle, entry: EngineFile, config: settings.Engine
) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Inputs and outputs of an engine with their maximum shapes, one row for each slot that is used."""
    built, used = _built(bundle), slots(bundle, config)
    slotted = entry.name == _SLOTTED.get(bundle.manifest.family)

    def limited(spec: TensorSpec) -> TensorSpec:
        if slotted and spec.shape[0] == built:
            return replace(spec, shape=(used, *spec.shape[1:]))
        return spec

    return [limited(t.spec()) for t in entry.inputs], [limited(t.spec()) for t in entry.outputs]


def demand(bundle: Bundle, config: settings.Engine) -> list[PlanRow]:
    """The weights, inputs and outputs of every engine that the daemon loads from this bundle. On a GPU they
    are one figure, which the build has measured; it counts like other memory, shared or not."""
    manifest = bundle.manifest
    if manifest.tensorrt is not None:
        return [device_row(manifest.name, manifest.tensorrt.device_mb)]
    rows = []
    for entry in manifest.engines:
        if entry.name in _UNSERVED.get(manifest.family, ()):
            continue
        owner = f"{manifest.name}.{entry.name}"
        beside = sum(file.bytes for file in manifest.data if file.file == f"{entry.file}.data")
        rows.append(weights_row(owner, entry.bytes + beside))
        inputs, outputs = interface(bundle, entry, config)
        rows += [buffer_row(spec, owner) for spec in (*inputs, *outputs) if not spec.alias]
    return rows


def _built(bundle: Bundle) -> int:
    name = _SLOTTED.get(bundle.manifest.family)
    if name is None:
        return 0
    return next((t.shape[0] for t in bundle.engine(name).inputs if t.name.startswith("past_")), 0)
