"""The ConvNeXt block and the stack of them that DVAE decoder, DVAE encoder and Vocos share.

Build time only. Neighbours: `layers.py` below; `vocoder.py` and `encoder.py` above.
"""

from __future__ import annotations

import numpy as np

from edged.compiler.chattts.layers import Net

DVAE_DILATION = 2  # of the depthwise convolutions of the DVAE's stacks; Vocos has 1


def block(net: Net, x: str, part: str, prefix: str, scale: str, dilation: int) -> str:
    """Depthwise convolution, norm, two linear layers with GELU between, layer scale, residual.

    prefix: of the tensors' names, without a dot at the end; scale: the name of the layer scale.
    """

    def own(name: str) -> np.ndarray:
        return net.weights.tensor(part, f"{prefix}.{name}")

    at = f"{part}.{prefix}"
    kernel = own("dwconv.weight")
    y = net.conv(x, f"{at}.dwconv", kernel, own("dwconv.bias"), dilation=dilation, groups=kernel.shape[0])
    y = net.norm(y, f"{at}.norm", own("norm.weight"), own("norm.bias"))
    y = net.gelu(net.linear(y, f"{at}.pwconv1", own("pwconv1.weight").T, own("pwconv1.bias")))
    matrix, bias = own("pwconv2.weight").T, own("pwconv2.bias")
    if net.weights.has(part, f"{prefix}.{scale}"):
        # The layer scale only scales the second layer's outputs: it is folded into its weights.
        gain = own(scale)
        matrix, bias = matrix * gain, bias * gain
    y = net.linear(y, f"{at}.pwconv2", matrix, bias)
    return str(net.graph.node("Add", [x, y]))


def blocks(net: Net, x: str, part: str, prefix: str, scale: str, dilation: int = 1) -> str:
    """All blocks `prefix`.0, .1, ... that the checkpoint has."""
    index = 0
    while net.weights.has(part, f"{prefix}.{index}.dwconv.weight"):
        x = block(net, x, part, f"{prefix}.{index}", scale, dilation)
        index += 1
    return x


def dvae_stack(net: Net, x: str, part: str, prefix: str) -> str:
    """The DVAE's trunk up to its last pointwise layer, which callers fuse with what follows it."""
    for index in (0, 2):
        name = f"{prefix}.conv_in.{index}"
        kernel, bias = net.weights.tensor(part, f"{name}.weight"), net.weights.tensor(part, f"{name}.bias")
        x = net.conv(x, f"{part}.{name}", kernel, bias)
        if index == 0:
            x = net.gelu(x)
    return blocks(net, x, part, f"{prefix}.decoder_block", "weight", DVAE_DILATION)
