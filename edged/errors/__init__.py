"""The one error tree of edged: every failure a client, an administrator or a log line can meet.

No thread, no imports from the rest of edged; one module a branch. The server turns an `EdgedError` into the
wire form (`code`, `message`, `retryable`, `hint`), and the client library turns the wire form back into the
same class, so an application catches `Busy` whichever side of the socket it was raised on.

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
    |   |-- PlanRefused          TensorRT cannot load a plan that was built
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
    |   |-- EmptyText, UnspeakableText, UnsupportedText, TextTooLong, BadMarkup
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

from collections.abc import Iterable

from edged.errors.base import (
    EdgedError,
    did_you_mean,
)
from edged.errors.bundles import (
    BundleBackendMismatch,
    BundleError,
    BundleFamilyUnknown,
    BundleFileMissing,
    BundleFileTruncated,
    BundleHashMismatch,
    BundleInaccurate,
    BundleManifestInvalid,
    BundleMissing,
    BundleNotAPlan,
    BundleTooNew,
    BundleTrialFailed,
    CheckpointConfig,
    CheckpointDamaged,
    CheckpointDtype,
    CheckpointError,
    CheckpointExtraTensor,
    CheckpointMissingFile,
    CheckpointMissingTensor,
    CheckpointShape,
)
from edged.errors.client import (
    BadReply,
    JobCancelled,
    NoDaemon,
    ReplyTimeout,
    TransportError,
)
from edged.errors.engines import (
    BrokenSound,
    CapabilityMismatch,
    CudaError,
    CudaInitFailed,
    CudaMissing,
    CudaUnavailable,
    DeviceMemoryShort,
    DeviceOutOfMemory,
    DriverTooOld,
    EmptySpeech,
    EngineError,
    GpuMissing,
    GpuUnusable,
    PlanFailed,
    PlanRefused,
    PluginUnusable,
    ShapeExceeded,
    TensorRTMismatch,
    TensorRTMissing,
)
from edged.errors.requests import (
    BadFrames,
    BadJson,
    BadMarkup,
    BadSpeaker,
    BadValue,
    DuplicateId,
    EmptyText,
    EventsNeedDealer,
    FrameTooLarge,
    RequestError,
    ResultTooLarge,
    TextTooLong,
    UnknownField,
    UnknownJob,
    UnknownOperation,
    UnknownVoice,
    UnspeakableText,
    UnsupportedFormat,
    UnsupportedText,
)
from edged.errors.service import (
    AddressUnavailable,
    AlreadyRunning,
    AudioDeviceLost,
    AudioError,
    Busy,
    ClientGone,
    ClientTooSlow,
    DeadlineMissed,
    InternalError,
    NoAudioDevice,
    OverBudget,
    RestartNeeded,
    ServiceError,
    ShuttingDown,
    Starting,
    StoreBusy,
)
from edged.errors.settings import (
    ConfigError,
    MissingExtra,
    PlanTooLarge,
    Problem,
)

__all__ = [
    "AddressUnavailable",
    "AlreadyRunning",
    "AudioDeviceLost",
    "AudioError",
    "BadFrames",
    "BadJson",
    "BadMarkup",
    "BadReply",
    "BadSpeaker",
    "BadValue",
    "BrokenSound",
    "BundleBackendMismatch",
    "BundleError",
    "BundleFamilyUnknown",
    "BundleFileMissing",
    "BundleFileTruncated",
    "BundleHashMismatch",
    "BundleInaccurate",
    "BundleManifestInvalid",
    "BundleMissing",
    "BundleNotAPlan",
    "BundleTooNew",
    "BundleTrialFailed",
    "Busy",
    "CapabilityMismatch",
    "CheckpointConfig",
    "CheckpointDamaged",
    "CheckpointDtype",
    "CheckpointError",
    "CheckpointExtraTensor",
    "CheckpointMissingFile",
    "CheckpointMissingTensor",
    "CheckpointShape",
    "ClientGone",
    "ClientTooSlow",
    "ConfigError",
    "CudaError",
    "CudaInitFailed",
    "CudaMissing",
    "CudaUnavailable",
    "DeadlineMissed",
    "DeviceMemoryShort",
    "DeviceOutOfMemory",
    "DriverTooOld",
    "DuplicateId",
    "EdgedError",
    "EmptySpeech",
    "EmptyText",
    "EngineError",
    "EventsNeedDealer",
    "FrameTooLarge",
    "GpuMissing",
    "GpuUnusable",
    "InternalError",
    "JobCancelled",
    "MissingExtra",
    "NoAudioDevice",
    "NoDaemon",
    "OverBudget",
    "PlanFailed",
    "PlanRefused",
    "PlanTooLarge",
    "PluginUnusable",
    "Problem",
    "ReplyTimeout",
    "RequestError",
    "RestartNeeded",
    "ResultTooLarge",
    "ServiceError",
    "ShapeExceeded",
    "ShuttingDown",
    "Starting",
    "StoreBusy",
    "TensorRTMismatch",
    "TensorRTMissing",
    "TextTooLong",
    "TransportError",
    "UnknownField",
    "UnknownJob",
    "UnknownOperation",
    "UnknownVoice",
    "UnspeakableText",
    "UnsupportedFormat",
    "UnsupportedText",
    "codes",
    "did_you_mean",
    "from_wire",
]


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
