"""Errors of voice bundles, and of the checkpoints they are made of. Neighbour: `base`."""

from __future__ import annotations

from edged.errors.base import EdgedError


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
