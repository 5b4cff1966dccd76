"""Errors of the daemon as it is now, and of its loudspeaker. Neighbour: `base`."""

from __future__ import annotations

from edged.errors.base import EdgedError


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


class AlreadyRunning(EdgedError):
    code = "already_running"
    default_hint = "stop the other daemon, or give this one another socket with --endpoint"
