"""The data files of a ChatTTS bundle: who can speak, and how the model draws its codes.

Leaf module, no thread. The loading thread reads, the compiler and `edged voice` write.
    data/speakers.json   named voices by their codes (`speakers.py`), and the statistics of random ones
    data/sampling.json   the defaults of a request
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from edged.errors import BundleManifestInvalid
from edged.job import Params
from edged.manifest import Name

MOST_TOP_K = 1_000_000  # beyond every vocabulary: all tokens may be drawn

T = TypeVar("T", bound=msgspec.Struct)


class Speaker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A named voice: a speaker code, or a recording as prompt code with the text said in it, or neither."""

    name: Name
    code: str = ""
    prompt: str = ""
    text: str = ""
    description: str = ""


class Speakers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """speakers.json."""

    voices: tuple[Speaker, ...]
    statistics: str = ""


class Sampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """sampling.json. temperature: of the draw; penalty: for codes among the last 16 of their codebook;
    min_steps: no ending before; speed: N of [speed_N]; attempts: draws of a first code that is no ending."""

    temperature: Annotated[float, Meta(gt=0, le=10)] = 0.3
    top_p: Annotated[float, Meta(gt=0, le=1)] = 0.7
    top_k: Annotated[int, Meta(ge=1, le=MOST_TOP_K)] = 20
    penalty: Annotated[float, Meta(gt=0, le=10)] = 1.05
    min_steps: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    speed: Annotated[int, Meta(ge=0, le=9)] = 5
    attempts: Annotated[int, Meta(ge=1, le=100)] = 8

    def asked(self, params: Params) -> Sampling:
        """With what a request asks for in the place of the bundle's."""
        wanted = {
            "temperature": params.temperature,
            "top_p": params.top_p,
            "top_k": params.top_k,
            "penalty": params.repetition_penalty,
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        return msgspec.structs.replace(self, **given) if given else self


def read(file: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise BundleManifestInvalid(f"{file}: {error}") from error


def write(file: Path, value: msgspec.Struct) -> None:
    file.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
