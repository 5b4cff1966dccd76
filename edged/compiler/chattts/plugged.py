"""The standard dialect with a TensorRT plugin for position encoding, causal mask and cache write.

Build time only. A layer's rotation, scatter and mask are one node "MaskedPosEnc" of domain "edged", which
only TensorRT with the plugin runs (source and tensors: `deploy/jetson/plugin`); all else is the standard
dialect's. The mask is the same in all layers: the first one's node gives it, the others do not compute it.
Neighbour: `standard.py`, which says the same without the plugin and with the same numbers.
"""

from __future__ import annotations

from onnx import TensorProto

from edged.compiler.chattts.dialect import rotary
from edged.compiler.chattts.standard import Standard

OPERATOR, DOMAIN, VERSION = "MaskedPosEnc", "edged", "1"


class Plugged(Standard):
    """Operators of the ONNX standard, and the plugin's."""

    name = "plugged"

    def begin(self, lengths: str, last: str, ids: str) -> None:
        cosine, sine = rotary(self.shape)
        first = self.node("Sub", lengths, self.node("Cast", last, to=TensorProto.INT32))
        self._tables = (first, self.graph.weight("cosine", cosine), self.graph.weight("sine", sine))
        self._mask = ""

    def place(self, qkv: str, past: tuple[str, str], present: tuple[str, str]) -> tuple[str, str, str]:
        query = self.graph.fresh("query")
        outputs = [query, *present]
        makes_mask = not self._mask
        if makes_mask:
            self._mask = self.graph.fresh("mask")
            outputs.append(self._mask)
        self.graph.node(
            OPERATOR,
            [qkv, *past, *self._tables],
            outputs,
            domain=DOMAIN,
            mask=int(makes_mask),
            plugin_version=VERSION,  # how TensorRT's parser finds the plugin: by name and these two
            plugin_namespace=DOMAIN,
        )
        return query, self.read(present[0]), self.read(present[1])

    def mask(self, keys: str) -> str:
        return self._mask
