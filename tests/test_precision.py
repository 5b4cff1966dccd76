"""Figures of a bundle against its thresholds: what is missing or no number never passes."""

from __future__ import annotations

import math

import msgspec
import pytest

from edged.bundle import Bundle
from edged.compiler.chattts.thresholds import TENSORRT
from edged.errors import BundleInaccurate
from edged.manifest import Manifest, TensorRT
from edged.precision import LOOSEST, Verdict, check_precision, demanded, judge, verdicts
from tests import bundles

LIMITS = {**TENSORRT["int8"], "min_waveform_snr_db": 40.0, "max_kl": 1e-4}
GOOD = {
    "min_hidden_snr_db": 24.0,
    "max_logit_error": 0.2,
    "max_kl": 2e-6,
    "min_token_agreement": 0.7,
    "min_waveform_snr_db": 54.5,
}


def manifest(measured: dict[str, float], thresholds: dict[str, float]) -> Manifest:
    record = TensorRT(
        version="10.3.0", capability="8.7", cuda="12.6", device="Orin", device_mb=600, measured=measured
    )
    plain = Bundle.load(bundles.tone()).manifest
    return msgspec.structs.replace(plain, backend="tensorrt", tensorrt=record, thresholds=thresholds)


def test_good_figures_pass() -> None:
    check_precision(manifest(GOOD, LIMITS))


def test_a_network_of_onnx_runtime_is_measured_otherwise() -> None:
    check_precision(Bundle.load(bundles.tone()).manifest)


@pytest.mark.parametrize(
    ("measured", "thresholds", "told"),
    [
        ({}, {}, "never measured"),
        ({}, LIMITS, "max_kl: not measured, at most 0.0001 is wanted; min_token_agreement: not measured"),
        ({**GOOD, "max_kl": 2e-4}, LIMITS, "max_kl: 0.0002, at most 0.0001 is wanted"),
        ({**GOOD, "min_waveform_snr_db": 39.9}, LIMITS, "39.9, at least 40"),
        (GOOD, {}, "min_waveform_snr_db: 54.5, without a threshold"),
        ({"max_x": 0.0}, {"max_x": 1.0}, "min_hidden_snr_db: not measured, at least 3 is wanted"),
        ({**GOOD, "max_kl": 9.0}, {"max_kl": 1e9}, "max_kl: 9, at most 0.3 is wanted"),
        ({**GOOD, "min_token_agreement": 0.0}, {**LIMITS, "min_token_agreement": -1e9}, "at least 0.12"),
        ({**GOOD, "max_kl": math.nan}, LIMITS, "max_kl"),
        ({**GOOD, "min_waveform_snr_db": math.nan}, LIMITS, "min_waveform"),
        (GOOD, {**LIMITS, "max_kl": math.inf}, "max_kl"),
        (GOOD, {**LIMITS, "min_waveform_snr_db": -math.inf}, "min_waveform"),
    ],
)
def test_all_others_are_refused(measured: dict[str, float], thresholds: dict[str, float], told: str) -> None:
    with pytest.raises(BundleInaccurate) as caught:
        check_precision(manifest(measured, thresholds))
    assert told in str(caught.value)


def test_what_a_build_demands_is_what_counts() -> None:
    for thresholds in TENSORRT.values():
        assert set(thresholds) == set(LOOSEST)
        assert demanded(thresholds) == thresholds


def test_only_what_failed_is_told() -> None:
    with pytest.raises(BundleInaccurate) as caught:
        judge("it", {**GOOD, "max_kl": 1.0}, LIMITS)
    assert "waveform" not in str(caught.value)


def test_at_the_threshold_is_within_it() -> None:
    assert all(verdict.passed for verdict in verdicts(LIMITS, LIMITS))
    assert not Verdict("max_kl", None, 1.0).passed
