"""TensorRT's report of an engine's layers, cut down to what a person looks for.

CLI process only; pure. The engine inspector gives a JSON object for each layer of the finished engine, some
MB for a large network. What is kept: how many there are, of which kinds, and the ones with most weights with
the tactic that was chosen for them. Neighbour: `trt.py` asks the inspector.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

LARGEST = 8  # layers that are named


def summary(report: str) -> dict[str, Any]:
    """Takes the inspector's JSON, in which a layer is an object, or its name where details were left out."""
    layers = json.loads(report).get("Layers", [])
    detailed = [layer for layer in layers if isinstance(layer, dict)]
    kinds = Counter(str(layer.get("LayerType", "?")) for layer in detailed)
    types = Counter(
        str(output.get("Format/Datatype", output.get("Format", "?")))
        for layer in detailed
        for output in layer.get("Outputs", [])
    )
    largest = sorted(detailed, key=_weights, reverse=True)[:LARGEST]
    return {
        "layers": len(layers),
        "kinds": dict(kinds.most_common()),
        "outputs": dict(types.most_common()),
        "largest": [
            {
                "name": str(layer.get("Name", "?")),
                "kind": str(layer.get("LayerType", "?")),
                "tactic": str(layer.get("TacticName", layer.get("TacticValue", "?"))),
                "weights": _weights(layer),
            }
            for layer in largest
            if _weights(layer)
        ],
    }


def _weights(layer: dict[str, Any]) -> int:
    """Numbers in a layer's weights."""
    found = layer.get("Weights")
    return int(found.get("Count", 0)) if isinstance(found, dict) else 0
