"""Errors of engines: networks, plans, and the GPU that they may run on. Neighbours: `base`, `remedies`."""

from __future__ import annotations

from edged.errors import remedies
from edged.errors.base import EdgedError


class EngineError(EdgedError):
    code = "engine"
    default_hint = "see the daemon's log; if it repeats, rebuild the bundle"


class ShapeExceeded(EngineError):
    code = "shape_exceeded"
    default_hint = "send shorter sentences"


class CudaError(EngineError):
    """The message names what was being done, the driver's call and the code that it gave."""

    code = "cuda"
    default_hint = "see journalctl -k -g 'NVRM|Xid|nvgpu'; if it repeats, restart the machine"


class DeviceOutOfMemory(CudaError):
    code = "device_out_of_memory"
    default_hint = "stop other programs that use the GPU, or load fewer or smaller voices"


class PlanFailed(EngineError):
    """The message names the network, and the node and operator where TensorRT told them."""

    code = "plan_failed"
    default_hint = "allow it more memory with --workspace, or build with another --precision"


class PlanRefused(EngineError):
    """TensorRT does not take a plan: of another version or kind of GPU, or damaged. The message has its
    reason."""

    code = "plan_refused"
    default_hint = (
        "rebuild the bundle on this machine: edged bundle build chattts --backend tensorrt --checkpoint DIR"
    )


class EmptySpeech(EngineError):
    code = "empty_speech"
    default_hint = "send it again with another seed, or in other words"


class BrokenSound(EngineError):
    code = "broken_sound"
    default_hint = "send it again with another seed; if it repeats, the bundle's weights are damaged"


class PluginUnusable(EngineError):
    code = "plugin_unusable"
    default_hint = (
        "rebuild the plugin on this machine (deploy/jetson/plugin/build.sh) and then the bundle with it, "
        "or build the bundle without --plugin"
    )


class GpuUnusable(EngineError):
    """What the GPU engines of a bundle need of the machine is not there; found before they are loaded."""

    code = "gpu_unusable"
    default_hint = "see all of it with: edged doctor; engine.fallback can name a bundle for the processor"


class CudaUnavailable(GpuUnusable):
    code = "cuda_unavailable"
    default_hint = "install or repair the NVIDIA driver, or use a bundle for onnxruntime"


class CudaMissing(GpuUnusable):
    code = "cuda_missing"
    default_hint = "install NVIDIA's driver, or on a Jetson nvidia-l4t-cuda; then: edged doctor"


class CudaInitFailed(GpuUnusable):
    """The driver would not start. The message has its reason, the hint what helps against it."""

    code = "cuda_init_failed"
    default_hint = (
        "restart the machine; if it stays, the service may not open the GPU's device nodes: use systemd's "
        "drop-in jetson.conf on a Jetson, nvidia.conf beside other cards"
    )


class GpuMissing(GpuUnusable):
    code = "gpu_missing"
    default_hint = (
        "look for its nodes (ls /dev/nvidia* /dev/nvmap), and whether CUDA_VISIBLE_DEVICES hides it"
    )


class DriverTooOld(GpuUnusable):
    """The message has both CUDA versions."""

    code = "driver_too_old"
    default_hint = "install a newer driver (on a Jetson: a newer JetPack), or rebuild the bundle here"


class TensorRTMissing(GpuUnusable):
    """The hint is the command for this machine."""

    code = "tensorrt_missing"

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, remedies.install("tensorrt") if hint is None else hint)


class TensorRTMismatch(GpuUnusable):
    """A plan runs with the TensorRT that made it. The message has both versions."""

    code = "tensorrt_mismatch"
    default_hint = (
        "rebuild the bundle on this machine: edged bundle build chattts --backend tensorrt --checkpoint DIR"
    )


class CapabilityMismatch(GpuUnusable):
    """A plan runs on the kind of GPU it was made on. The message has both compute capabilities."""

    code = "capability_mismatch"
    default_hint = (
        "rebuild the bundle on this machine: edged bundle build chattts --backend tensorrt --checkpoint DIR"
    )


class DeviceMemoryShort(GpuUnusable):
    """The message has the numbers."""

    code = "device_memory"
    default_hint = "stop other programs that use the GPU, or rebuild the bundle with fewer --slots"
