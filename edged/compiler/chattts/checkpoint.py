"""Opens a ChatTTS checkpoint, checks all of it, and gives its weights one at a time as float32.

CLI process only; used by one thread or several (reads are positional). Neighbours: `tensorfile.py` reads
the files, `sizes.py` and `layout.py` say what must be in them, the graph modules take the weights.

    with Checkpoint.open(Path("ChatTTS")) as checkpoint:
        checkpoint.sizes.layers
        checkpoint.tensor("gpt", "layers.0.self_attn.q_proj.weight")

Opening reads headers and JSON only, so a wrong file is named at once and not after minutes of building.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from edged.bundle import sha256
from edged.compiler.chattts import layout
from edged.compiler.chattts.sizes import Headers, derive, listed, read_config, read_json
from edged.compiler.chattts.tensorfile import TensorFile
from edged.errors import (
    CheckpointConfig,
    CheckpointDamaged,
    CheckpointExtraTensor,
    CheckpointMissingFile,
    CheckpointMissingTensor,
    CheckpointShape,
    did_you_mean,
)

# The two ways in which PyTorch stores a weight as magnitude and direction, oldest last.
_PAIRS = (
    ("parametrizations.weight.original0", "parametrizations.weight.original1"),
    ("weight_g", "weight_v"),
)


class Checkpoint:
    """A checked checkpoint. Made by `open`; close it, or use it as a context."""

    def __init__(
        self,
        root: Path,
        sizes: layout.Sizes,
        files: Mapping[str, TensorFile],
        stored: Mapping[str, Mapping[str, tuple[str, ...]]],
        tokens: Mapping[str, int],
    ) -> None:
        self.root = root  # the asset folder
        self.sizes = sizes
        self._files = files
        self._stored = stored  # part -> name -> the one name it is stored by, or magnitude and direction
        self._tokens = tokens
        self._hashes: dict[str, str] = {}

    @classmethod
    def open(cls, path: Path) -> Checkpoint:
        """`path` holds `asset`, or is the asset folder. Raises a `CheckpointError` that names the fault."""
        root = _asset_folder(path)
        for name in (layout.GPT_CONFIG, *layout.TOKENIZER_FILES, *layout.PARTS.values()):
            if not (root / name).is_file():
                raise CheckpointMissingFile(f"{name}: no such file in {root}")
        config = read_config(root / layout.GPT_CONFIG)
        for name in layout.TOKENIZER_FILES[1:]:
            read_json(root / name, name)
        files: dict[str, TensorFile] = {}
        try:
            for part, name in layout.PARTS.items():
                files[part] = TensorFile(root / name, name)
            shapes = {part: _merged_shapes(file) for part, file in files.items()}
            sizes = derive(config, Headers(shapes))
            tokens = _control_tokens(root / layout.TOKENIZER, sizes.text_tokens)
            stored = {part: _match(part, sizes, file) for part, file in files.items()}
        except BaseException:
            for file in files.values():
                file.close()
            raise
        return cls(root, sizes, files, stored, tokens)

    def tensor(self, part: str, name: str) -> NDArray[np.float32]:
        """The values of a weight, read from the disk at each call; magnitude and direction are merged."""
        file, stored = self._files[part], self._lookup(part, name)
        if len(stored) == 1:
            return file.read(stored[0])
        magnitude, direction = file.read(stored[0]), file.read(stored[1])
        rows = direction.reshape(len(direction), -1)
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        if not norms.all():
            raise CheckpointDamaged(f"{file.label}: tensor {stored[1]!r} has a row of zeros")
        direction *= (magnitude.ravel() / norms).astype(np.float32).reshape(magnitude.shape)
        return direction

    def shape(self, part: str, name: str) -> tuple[int, ...]:
        """The shape of a weight, without reading it."""
        return self._files[part].entries[self._lookup(part, name)[-1]].shape

    def names(self, part: str) -> tuple[str, ...]:
        """The names of all weights of a part, in the order of the layout."""
        return tuple(self._stored[part])

    def has(self, part: str, name: str) -> bool:
        return name in self._stored[part]

    def token_id(self, token: str) -> int:
        """The id of a control token such as [spk_emb]."""
        try:
            return self._tokens[token]
        except KeyError:
            raise CheckpointConfig(f"{layout.TOKENIZER}: has no token {token!r}") from None

    @property
    def tokenizer_file(self) -> Path:
        return self.root / layout.TOKENIZER

    def fingerprint(self) -> dict[str, str]:
        """SHA-256 of every file, by its name within the asset folder."""
        if not self._hashes:
            names = (*layout.PARTS.values(), layout.GPT_CONFIG, *layout.TOKENIZER_FILES)
            self._hashes = {name: sha256(self.root / name) for name in sorted(names)}
        return dict(self._hashes)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lookup(self, part: str, name: str) -> tuple[str, ...]:
        try:
            return self._stored[part][name]
        except KeyError:
            hint = did_you_mean(name, self._stored[part])
            raise CheckpointMissingTensor(f"{layout.PARTS[part]}: has no tensor {name!r}", hint) from None


def _asset_folder(path: Path) -> Path:
    root = path / "asset" if (path / "asset").is_dir() else path
    if not root.is_dir():
        raise CheckpointMissingFile(f"{path}: no such folder")
    return root


def _pair(name: str) -> list[tuple[str, str]]:
    """The names by which the parts of a weight may be stored."""
    base = name.removesuffix("weight")
    return [(base + magnitude, base + direction) for magnitude, direction in _PAIRS]


def _merged_shapes(file: TensorFile) -> dict[str, tuple[int, ...]]:
    """The shapes by merged names, so that sizes can be derived whatever the storage."""
    shapes = {name: entry.shape for name, entry in file.entries.items()}
    for name, entry in file.entries.items():
        for _, direction in _PAIRS:
            if name.endswith("." + direction):
                shapes.setdefault(name.removesuffix(direction) + "weight", entry.shape)
    return shapes


def _match(part: str, sizes: layout.Sizes, file: TensorFile) -> dict[str, tuple[str, ...]]:
    """How each weight of the part is stored; raises when one is missing, misshapen or unknown."""
    stored: dict[str, tuple[str, ...]] = {}
    missing: list[str] = []
    wrong: list[str] = []
    for name, shape in layout.tensors(part, sizes).items():
        found = _stored_as(name, file)
        absent = [one for one in found if one not in file.entries]
        missing += absent
        if absent:
            continue
        stored[name] = found
        expected = [shape] if len(found) == 1 else [(shape[0],) + (1,) * (len(shape) - 1), shape]
        for one, want in zip(found, expected, strict=True):
            have = file.entries[one].shape
            if have != want:
                wrong.append(f"tensor {one!r} has the shape {have}, expected {want}")
    used = {one for found in stored.values() for one in found}
    extra = [name for name in file.entries if name not in used and not layout.TOLERATED[part].fullmatch(name)]
    if missing:
        near = did_you_mean(missing[0], extra)
        raise CheckpointMissingTensor(f"{file.label}: tensor {listed(missing)} is missing", near or None)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise CheckpointShape(f"{file.label}: {wrong[0]}{more}")
    if extra:
        raise CheckpointExtraTensor(f"{file.label}: unknown tensor {listed(extra)}")
    return stored


def _stored_as(name: str, file: TensorFile) -> tuple[str, ...]:
    if name not in file.entries and name.endswith(".weight"):
        for pair in _pair(name):
            if any(one in file.entries for one in pair):
                return pair
    return (name,)


def _control_tokens(path: Path, text_tokens: int) -> dict[str, int]:
    """The ids of the tokenizer's control tokens; all ids must have a row in the text embedding."""
    label = layout.TOKENIZER
    raw = read_json(path, label)
    try:
        ids = {str(token): int(number) for token, number in raw["model"]["vocab"].items()}
        ids.update({str(token["content"]): int(token["id"]) for token in raw["added_tokens"]})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointConfig(f"{label}: not a tokenizer of the tokenizers package ({error!r})") from error
    for token in layout.NEEDED_TOKENS:
        if token not in ids:
            raise CheckpointConfig(f"{label}: has no token {token!r}")
    most = max(ids, key=lambda token: ids[token])
    if ids[most] >= text_tokens or min(ids.values()) < 0:
        raise CheckpointConfig(
            f"{label}: token {most!r} has the id {ids[most]}, "
            f"but {layout.PARTS['embed']} holds {text_tokens} text tokens"
        )
    return {token: ids[token] for token in (*layout.CONTROL_TOKENS, "[UNK]") if token in ids}
