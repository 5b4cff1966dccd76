"""What a voice asks of the engine layer when it wants an engine. Data only.

Neighbours: voices fill it, `select.py` and the backends read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edged.engine.api import TensorSpec


@dataclass(frozen=True, slots=True)
class Decoder:
    """The files of a native decoder. libraries: by the name of their level, see `edged.native`."""

    index: Path
    weights: Path
    libraries: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Request:
    """An engine that is wanted. decoder: what can run instead of the network, where the processor and the
    settings allow it.

    For a device: resident are the tensors that need never leave it, work the arrays beside the tensors, such
    as lanes, and slots how many utterances it serves at once (0: not known). plugin is the library that the
    plan needs, if any.
    """

    name: str  # prefixes its buffers
    path: Path
    inputs: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]
    decoder: Decoder | None = None
    resident: frozenset[str] = frozenset()
    work: Sequence[TensorSpec] = ()
    slots: int = 0
    plugin: Path | None = None
