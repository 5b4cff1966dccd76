"""How far a bundle's numbers may be from its checkpoint's, by precision. Leaf data of the build.

Written into the manifest, where they can be read and changed; `verify.py` measures and compares. They were
set after measuring bundles of random weights at full size, where codes are nearly equally likely and a small
difference draws another one. They catch a broken build; whether a precision sounds right can only be judged
with a trained checkpoint.
"""

from __future__ import annotations

# For TensorRT, by what `agreement.py` measures against fp32 on ONNX Runtime while the bundle is built. With
# random weights at full size, the same networks on a CPU gave: hidden states, divergence, agreement, sound of
#   fp16: 51 dB, 4e-6 nat, 96 %, 53 dB, all roundings of float16 counted;
#   int8: 24 dB, 2e-3 nat, 66 %; int4: 5 dB, 0.17 nat, 20 %, those of the weights alone.
# No trained checkpoint and no GPU was at hand.
TENSORRT: dict[str, dict[str, float]] = {
    "fp32": {
        "min_hidden_snr_db": 60.0,
        "max_logit_error": 0.01,
        "max_kl": 1e-5,
        "min_token_agreement": 0.97,
        "min_waveform_snr_db": 60.0,
    },
    "fp16": {
        "min_hidden_snr_db": 40.0,
        "max_logit_error": 0.1,
        "max_kl": 1e-4,
        "min_token_agreement": 0.9,
        "min_waveform_snr_db": 40.0,
    },
    "int8": {
        "min_hidden_snr_db": 20.0,
        "max_logit_error": 1.0,
        "max_kl": 0.01,
        "min_token_agreement": 0.5,
        "min_waveform_snr_db": 40.0,
    },
    "int4": {
        "min_hidden_snr_db": 3.0,
        "max_logit_error": 10.0,
        "max_kl": 0.3,
        "min_token_agreement": 0.12,
        "min_waveform_snr_db": 40.0,
    },
}

# min_*: at least; max_*: at most. Signal to noise in dB; agreement as a fraction; divergence in nats.
THRESHOLDS: dict[str, dict[str, float]] = {
    "fp32": {
        "min_weight_snr_db": 100.0,
        "min_cache_snr_db": 60.0,
        "min_token_agreement": 0.99,
        "max_kl": 1e-6,
        "min_waveform_snr_db": 60.0,
    },
    "int8": {
        "min_weight_snr_db": 35.0,
        "min_cache_snr_db": 15.0,
        "min_token_agreement": 0.5,
        "max_kl": 0.01,
        "min_waveform_snr_db": 20.0,
    },
    "int4": {
        "min_weight_snr_db": 15.0,
        "min_cache_snr_db": 3.0,
        "min_token_agreement": 0.12,
        "max_kl": 0.3,
        "min_waveform_snr_db": 20.0,
    },
}
