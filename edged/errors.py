"""The one error tree of edged: every failure a client, an administrator or a log line can meet.

Leaf module: no thread, no imports from the package. The server turns an `EdgedError` into the wire
form (`code`, `message`, `retryable`, `hint`), and the client library turns the wire form back into
the same class, so an application catches `Busy` whichever side of the socket it was raised on.

    EdgedError
    |-- ConfigError            the configuration cannot be used
    |   `-- PlanTooLarge         its voices and buffers need more memory than it allows
    |-- MissingExtra           an optional dependency is not installed
    |-- BundleError            a voice bundle cannot be used
    |   |-- BundleMissing, BundleManifestInvalid, BundleFileMissing, BundleFileTruncated,
    |   |-- BundleHashMismatch, BundleTooNew, BundleFamilyUnknown, BundleBackendMismatch
    |   |-- BundleNotAPlan       a file that should be a TensorRT plan is something else
    |   |-- BundleTrialFailed    it was tried in a process of its own, and could not be used
    |   `-- BundleInaccurate     its numbers are too far from those of the checkpoint it was built from
    |-- CheckpointError        the weights of a model cannot be compiled
    |   |-- CheckpointMissingFile, CheckpointMissingTensor, CheckpointExtraTensor, CheckpointShape,
    |   `-- CheckpointDtype, CheckpointConfig, CheckpointDamaged
    |-- EngineError            an engine could not be loaded or failed while running
    |   |-- ShapeExceeded      a request larger than the shapes allocated at start
    |   |-- CudaError            a call of the GPU's driver failed
    |   |   `-- DeviceOutOfMemory  there is not enough device or page-locked memory
    |   |-- PlanFailed           TensorRT cannot build an engine of a network
    |   |-- EmptySpeech        the model ended an utterance before its first sound, each time it was tried
    |   |-- BrokenSound        the network made samples that are no numbers
    |   |-- PluginUnusable     a bundle's TensorRT plugin cannot be loaded here
    |   `-- GpuUnusable        a bundle's GPU engines cannot run on this machine as it is
    |       |-- CudaUnavailable    while they are loaded it turns out that there is no driver, or no device
    |       |-- CudaMissing, CudaInitFailed, GpuMissing, DriverTooOld, TensorRTMissing,
    |       `-- TensorRTMismatch, CapabilityMismatch, DeviceMemoryShort
    |-- RequestError           the request itself is wrong; sending it again will not help
    |   |-- BadJson, BadFrames, FrameTooLarge, BadValue, UnknownField, UnknownOperation
    |   |-- UnknownVoice, UnknownJob, DuplicateId
    |   |-- EmptyText, UnspeakableText, UnsupportedText, TextTooLong
    |   `-- UnsupportedFormat, EventsNeedDealer, ResultTooLarge, BadSpeaker
    |-- ServiceError           the daemon cannot do it now
    |   |-- RestartNeeded, StoreBusy
    |   |-- Busy, OverBudget, Starting, ShuttingDown, DeadlineMissed, ClientTooSlow, ClientGone, InternalError
    |   `-- AddressUnavailable   listen.tcp is an address that this machine does not have yet, or in use
    |-- AudioError             the loudspeaker cannot be used
    |   `-- NoAudioDevice, AudioDeviceLost
    |-- TransportError         raised by the client library only
    |   `-- NoDaemon, ReplyTimeout, BadReply
    |-- AlreadyRunning         another daemon owns the socket
    `-- JobCancelled           raised by the client library when its job was cancelled
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar

LONGEST_GUESS = 64  # characters


class EdgedError(Exception):
    """Base of the tree. `code` is the stable wire name; `hint` says what to do about it.

    `retryable` means the same request may succeed later without being changed.
    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a configuration file; line and column count from 1, 0 means the whole file."""

    file: str
    line: int
    key: str  # dotted path, "audio.latency_ms"; empty when no single setting is meant
    message: str
    expected: str = ""
    hint: str = ""
    column: int = 0

    def __str__(self) -> str:
        # FILE:LINE:COLUMN is what editors and terminals turn into a link.
        place = ":".join([self.file, *(str(n) for n in (self.line, self.column) if n)])
        key = f" {self.key}:" if self.key else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}:{key} {self.message}{hint}"


class ConfigError(EdgedError):
    """`problems` holds everything found in the file, in its order, when a file was read."""

    code = "config"
    default_hint = "check the file with: edged check-config FILE"
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, problems: Sequence[Problem], more: int = 0) -> ConfigError:
        """One error that lists every problem, one line each, and says how many more there are."""
        ordered = tuple(sorted(problems, key=lambda p: (p.line, p.column)))
        if more:
            ordered += (Problem(ordered[-1].file, ordered[-1].line, "", f"and {more} more problems"),)
        lines = [str(problem) for problem in ordered]
        if len(lines) > 1:
            lines.insert(0, f"{len(problems) + more} problems in the configuration:")
        error = cls("\n".join(lines), hint="")  # every problem carries its own hint
        error.problems = ordered
        return error


class PlanTooLarge(ConfigError):
    """The message has the numbers, the hint the settings that would make it fit."""

    code = "memory_plan"
    default_hint = "load fewer or smaller voices, or raise service.memory_mb"


class MissingExtra(EdgedError):
    """An optional dependency is absent. The hint names the extra that brings it."""

    code = "missing_extra"

    def __init__(self, module: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the Python package {module!r}, which is not installed",
            f"install it with: pip install 'edged[{extra}]'",
        )


# -- bundles ------------------------------------------------------------------------------------


class BundleError(EdgedError):
    code = "bundle"


class BundleMissing(BundleError):
    code = "bundle_missing"
    default_hint = "see edged bundle list; the built-in voice is built with: edged bundle build hibari"


class BundleManifestInvalid(BundleError):
    code = "bundle_manifest_invalid"
    default_hint = "rebuild the bundle; manifest.json is not edited by hand"


class BundleFileMissing(BundleError):
    code = "bundle_file_missing"
    default_hint = "copy the bundle again or rebuild it"


class BundleFileTruncated(BundleError):
    code = "bundle_file_truncated"
    default_hint = "the copy was interrupted or the disk is full: copy the bundle again"


class BundleHashMismatch(BundleError):
    code = "bundle_hash_mismatch"
    default_hint = "a file of the bundle was changed or damaged: copy or rebuild the bundle"


class BundleTooNew(BundleError):
    code = "bundle_too_new"
    default_hint = "upgrade edged, or rebuild the bundle with this version"


class BundleFamilyUnknown(BundleError):
    code = "bundle_family_unknown"
    default_hint = "this version of edged has no such voice family: upgrade edged"


class BundleBackendMismatch(BundleError):
    code = "bundle_backend_mismatch"
    default_hint = "rebuild the bundle for a backend that this machine has"


class BundleInaccurate(BundleError):
    code = "bundle_inaccurate"
    default_hint = "build it with a higher precision, or keep the worst layers higher with --override"


class BundleNotAPlan(BundleError):
    code = "bundle_not_a_plan"
    default_hint = "build the bundle on the machine that runs it: edged bundle build ... --backend tensorrt"


class BundleTrialFailed(BundleError):
    code = "bundle_trial_failed"
    default_hint = "the bundle in use was kept; copy or rebuild the new one"


# -- checkpoints (build time) --------------------------------------------------------------------


class CheckpointError(EdgedError):
    """The message names the file, and the tensor or the setting in it."""

    code = "checkpoint"


class CheckpointMissingFile(CheckpointError):
    code = "checkpoint_missing_file"
    default_hint = "give the folder that holds `asset`, complete as it is published"


class CheckpointMissingTensor(CheckpointError):
    code = "checkpoint_missing_tensor"
    default_hint = "the file is of another model or version: fetch the checkpoint again"


class CheckpointExtraTensor(CheckpointError):
    code = "checkpoint_extra_tensor"
    default_hint = "the file is of another model or version: this compiler would leave a part of it out"


class CheckpointShape(CheckpointError):
    code = "checkpoint_shape"
    default_hint = "the files belong to different models: fetch all of them from one place"


class CheckpointDtype(CheckpointError):
    code = "checkpoint_dtype"
    default_hint = "weights are read as F32, F16 or BF16: convert the checkpoint, quantised ones included"


class CheckpointConfig(CheckpointError):
    code = "checkpoint_config"
    default_hint = "use the JSON files that came with the weights"


class CheckpointDamaged(CheckpointError):
    code = "checkpoint_damaged"
    default_hint = "the download was interrupted or the disk is faulty: fetch the file again"


# -- engines ------------------------------------------------------------------------------------


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
    code = "tensorrt_missing"
    default_hint = (
        "make JetPack's TensorRT visible to edged's Python: deploy/jetson/use-tensorrt.sh; elsewhere install "
        "the package tensorrt"
    )


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


# -- requests -----------------------------------------------------------------------------------


class RequestError(EdgedError):
    code = "bad_request"


class BadJson(RequestError):
    code = "bad_json"
    default_hint = "the header frame must be one JSON object in UTF-8"


class BadFrames(RequestError):
    code = "bad_frames"
    default_hint = "a request is one header frame (after an empty delimiter frame, as REQ sends it)"


class FrameTooLarge(RequestError):
    code = "frame_too_large"
    default_hint = "send the text in several requests"


class BadValue(RequestError):
    code = "bad_value"


class UnknownField(RequestError):
    code = "unknown_field"


class UnknownOperation(RequestError):
    code = "unknown_operation"


class UnknownVoice(RequestError):
    code = "unknown_voice"


class UnknownJob(RequestError):
    code = "unknown_job"
    default_hint = "the job has ended, or was sent by another connection: use its job number"


class DuplicateId(RequestError):
    code = "duplicate_id"
    default_hint = "use a new id for each request until the earlier one has ended"


class EmptyText(RequestError):
    code = "empty_text"
    default_hint = "send at least one letter or digit"


class UnspeakableText(RequestError):
    code = "unspeakable_text"
    default_hint = "nothing in the text has a sound (only punctuation, symbols or emoji)"


class UnsupportedText(RequestError):
    code = "unsupported_text"
    default_hint = "choose a voice that speaks this language (see: edged voices)"


class TextTooLong(RequestError):
    code = "text_too_long"
    default_hint = "send the text in several requests, or raise limits.text_chars"


class UnsupportedFormat(RequestError):
    code = "unsupported_format"


class BadSpeaker(RequestError):
    code = "bad_speaker"
    default_hint = "give a speaker code as ChatTTS writes it, whole and unchanged"


class EventsNeedDealer(RequestError):
    code = "events_need_dealer"
    default_hint = "use a DEALER socket for reply=events, or ask for reply=final or ack"


class ResultTooLarge(RequestError):
    code = "result_too_large"
    default_hint = (
        "ask for a stream (reply=events), a compressed format (ogg_opus, mp3, flac) or a lower "
        "sample_rate, send less text, or raise limits.reply_mb"
    )


# -- the service's state ------------------------------------------------------------------------


class ServiceError(EdgedError):
    code = "service"
    retryable = True


class Busy(ServiceError):
    code = "busy"
    default_hint = "the queue is full: try again in a moment"


class OverBudget(ServiceError):
    """The message has the numbers."""

    code = "over_budget"
    default_hint = "the daemon has little memory left and frees what it can: try again in a minute"


class Starting(ServiceError):
    code = "starting"
    default_hint = "the voices are being loaded: try again in a few seconds"


class ShuttingDown(ServiceError):
    code = "shutting_down"
    default_hint = "the daemon is stopping: try again when it is back"


class DeadlineMissed(ServiceError):
    code = "deadline"
    default_hint = "the job could not start in time: send fewer jobs or allow more time"


class RestartNeeded(ServiceError):
    code = "restart_needed"
    retryable = False
    default_hint = "systemctl restart edged"


class StoreBusy(ServiceError):
    code = "store_busy"
    default_hint = "wait until the other `edged bundle` command has ended"


class AddressUnavailable(ServiceError):
    """It may be there in a moment: no fault of the configuration, so that systemd tries again."""

    code = "address_unavailable"
    default_hint = "see who has it: ss -ltnp, or wait for the network: ip addr"


class ClientTooSlow(ServiceError):
    code = "client_too_slow"
    default_hint = "read the audio faster, or ask for the whole result instead of a stream"


class ClientGone(ServiceError):
    code = "client_gone"


class InternalError(ServiceError):
    code = "internal"
    default_hint = "this is a fault in edged: please report it with the daemon's log"


class AudioError(EdgedError):
    code = "audio"


class NoAudioDevice(AudioError):
    code = "no_audio_device"
    retryable = True
    default_hint = "see which ones there are: edged audio list; check plug, power and the sound server"


class AudioDeviceLost(AudioError):
    code = "device_lost"
    retryable = True
    default_hint = "the loudspeaker stopped and could not be restarted: check its plug and the sound server"


# -- the client's side of the socket ------------------------------------------------------------


class TransportError(EdgedError):
    code = "transport"
    retryable = True


class NoDaemon(TransportError):
    code = "no_daemon"
    default_hint = "start it with: edged serve"


class ReplyTimeout(TransportError):
    code = "timeout"
    default_hint = "the daemon accepted the connection but did not answer in time"


class BadReply(TransportError):
    code = "bad_reply"
    retryable = False
    default_hint = "client and daemon may be of different versions"


class AlreadyRunning(EdgedError):
    code = "already_running"
    default_hint = "stop the other daemon, or give this one another socket with --endpoint"


class JobCancelled(EdgedError):
    code = "cancelled"


def _tree(root: type[EdgedError]) -> Iterable[type[EdgedError]]:
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)


def from_wire(code: str, message: str, hint: str = "") -> EdgedError:
    """The exception for a `failed` event; an unknown code (a newer daemon) gives the base class."""
    for cls in _tree(EdgedError):
        if cls.code == code:
            error = cls.__new__(cls)
            EdgedError.__init__(error, message, hint)
            return error
    return EdgedError(f"{code}: {message}", hint)


def codes() -> dict[str, type[EdgedError]]:
    """Every wire code of the tree with its class."""
    return {cls.code: cls for cls in _tree(EdgedError)}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` for the closest known name, or an empty string.

    A word far longer than any name is not compared: the comparison takes time that grows with it.
    """
    if len(word) > LONGEST_GUESS:
        return ""
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""
