"""Errors of a request: sending it again will not help. Neighbour: `base`."""

from __future__ import annotations

from edged.errors.base import EdgedError


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


class BadMarkup(RequestError):
    """line, column: of the text, from 1; the message names them."""

    code = "bad_markup"
    default_hint = "what markup: ssml takes is in README; plain text needs no markup"


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
