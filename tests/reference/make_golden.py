#!/usr/bin/env python3
"""Makes tests/data/chattts_tiny/ with the reference package. Run by hand, from the root of the repository:

    PYTHONPATH=. python tests/reference/make_golden.py [--only NAME]

with a Python that has the reference (see live.INSTALL) and edged's own dependencies. The files belong to the
checkpoint of `tests/checkpoints.py: tiny` with its defaults. The quantiser of audio codes has changed with
versions of vector_quantize_pytorch: the file of its vectors is named after the rule that is installed, so
`--only dvae` is run twice, with 1.14.24 (the "tanh" rule, of 2024) and with 1.32.0 ("symmetric").
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tests import checkpoints
from tests.reference import live

OUT = Path(__file__).parents[1] / "data" / "chattts_tiny"
STEPS = 200
KEPT = (0, 1, 2, 50, 100, STEPS - 1)  # steps whose logits are kept
SPOKEN = (
    "[Stts][spk_emb][speed_5]hello world, this is the voice. 你好，今天天气很好！[Ptts]",
    "[Stts][spk_emb][speed_2]good morning[uv_break]你好[laugh][Ptts]",
    "[Stts][empty_spk]time[Ptts]",
)
REFINED = "[Sbreak]thank you 我们今天说话[Pbreak][oral_2][laugh_0][break_6]"
TEXTS = (
    *SPOKEN,
    REFINED,
    "",
    " ",
    "Hello, WORLD!  doing speaking",
    "你好世界。中文没有空格，標點；「引號」",
    "mixed中文and英文123",
    "a bare [ and ] and [unknown] and [break_9] and [ break_1 ]",
    "[break_0][break_7][laugh_2][oral_9][speed_0][lbreak][v_break]",
    "tabs\tand\nnewlines\r\n",
    "naïve café Ünïcode e\u0301 \u200b zero width",
    "emoji 🙂 and 龘 rare",
    "[STTS] [stts] [Stts]",
    "supercalifragilisticexpialidocious",
)


def save(name: str, **arrays: Any) -> None:
    np.savez_compressed(OUT / f"{name}.npz", **{key: np.asarray(value) for key, value in arrays.items()})


def save_json(name: str, value: Any) -> None:
    (OUT / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def tokens(reference: live.Reference) -> None:
    """Token ids of texts as the reference's tokenizer gives them."""
    plain = reference.tokenizer._tokenizer
    save_json("tokens", [{"text": t, "ids": plain.encode(t, add_special_tokens=False)} for t in TEXTS])


def speakers_of(reference: live.Reference) -> Any:
    generator = np.random.default_rng(7)
    return generator.normal(0, 1, (len(SPOKEN), reference.sizes.hidden)).astype(np.float32)


def gpt(reference: live.Reference) -> None:
    """Greedy decoding: alone, in a batch, behind an audio prompt, and of the text head."""
    speakers = speakers_of(reference)
    arrays: dict[str, Any] = {"kept": KEPT}
    gaps = []

    def record(name: str, texts: list[str], given: Any, steps: int, **options: Any) -> Any:
        result, logits = reference.greedy(texts, given, steps=steps, **options)
        _, ids, attention = reference.embeddings(texts, None, options.get("prompt"))
        kept = [step for step in KEPT if step < steps]
        groups = len(logits[0]) // len(texts)
        for row in range(len(texts)):
            at = f"{name}{row}"
            real = attention[row].bool()
            sampled = result.ids[row].numpy().reshape(steps, -1)
            arrays[f"{at}.ids"] = ids[row][real].numpy().astype(np.int16)
            arrays[f"{at}.tokens"] = sampled.astype(np.int16)
            arrays[f"{at}.logits"] = np.stack([logits[s].numpy() for s in kept])[
                :, row * groups : (row + 1) * groups
            ]
            arrays[f"{at}.hidden"] = result.hiddens[row].numpy()
        for step in logits:
            best = np.sort(step.numpy()[:, :-1], axis=1)
            gaps.append((best[:, -1] - best[:, -2]).min())
        return result

    for number, text in enumerate(SPOKEN):
        record(f"alone{number}.", [text], speakers[number : number + 1], STEPS)
        arrays[f"speaker{number}"] = speakers[number]
    record("batch.", list(SPOKEN), speakers, STEPS)
    for number in range(len(SPOKEN)):  # the logits are those of alone, to rounding
        same = np.array_equal(arrays[f"batch.{number}.tokens"], arrays[f"alone{number}.0.tokens"])
        print(f"row {number}: batch equals alone: {same}", file=sys.stderr)
        for kind in ("logits", "hidden", "ids"):
            del arrays[f"batch.{number}.{kind}"]
    import torch

    prompt = torch.from_numpy(np.random.default_rng(8).integers(0, 625, (4, 9)))
    record("prompted.", [SPOKEN[0]], speakers[:1], 40, prompt=prompt)
    record("refine.", [REFINED], None, 60, refine=True)
    print(f"smallest distance of two best logits: {min(gaps):.2e}", file=sys.stderr)
    save("gpt", **arrays)


def sampling(reference: live.Reference) -> None:
    """Probabilities after the reference's processors and warpers, on random logits."""
    import torch
    from ChatTTS.model import gen_logits

    generator = np.random.default_rng(9)
    rows = []
    for number in range(48):
        scores = generator.normal(0, generator.choice([0.5, 2.0, 6.0]), 626).astype(np.float32)
        likely = np.argsort(scores)[-12:]  # the history is of codes that could be drawn, and often repeats
        history = np.full(16, -1, np.int64)
        count = (0, 1, 5, 16)[number % 4]
        history[16 - count :] = generator.choice(likely, count)
        rows.append(
            {
                "scores": scores,
                "history": history,
                "temperature": generator.choice([0.1, 0.3, 0.7, 1.0, 1.5]),
                "top_p": generator.choice([0.05, 0.5, 0.7, 0.9, 1.0]),
                "top_k": generator.choice([1, 3, 5, 20, 100, 626]),
                "penalty": generator.choice([1.0, 1.05, 1.5, 0.8]),
                "ban_end": number % 3 == 0,
            }
        )
        if number % 6 == 0:  # the end token would be the best
            scores[625] = scores.max() + 1
    probs = []
    for row in rows:
        warpers, processors = gen_logits(
            num_code=625,
            top_P=float(row["top_p"]),
            top_K=int(row["top_k"]),
            repetition_penalty=float(row["penalty"]),
        )
        logits = torch.from_numpy(row["scores"].copy())[None] / float(row["temperature"])
        seen = torch.from_numpy(row["history"][row["history"] >= 0])[None]
        for step in (*processors, *warpers):
            logits = step(seen, logits)
        if row["ban_end"]:
            logits[:, 625] = -torch.inf
        probs.append(torch.softmax(logits, -1)[0].numpy())
    save("sampling", probs=probs, **{key: [row[key] for row in rows] for key in rows[0]})


def vocoder(reference: live.Reference) -> None:
    """Mel and samples from hidden states."""
    import torch

    result, _ = reference.greedy([SPOKEN[0]], speakers_of(reference)[:1], steps=24)
    arrays = {}
    for steps in (1, 2, 24):
        hidden = result.hiddens[0][:steps]
        mel = reference.decoder(hidden.T[None].clone())
        arrays |= {f"hidden{steps}": hidden, f"mel{steps}": mel, f"samples{steps}": reference.samples(mel)}
    save("vocoder", **{key: torch.as_tensor(value).numpy() for key, value in arrays.items()})


def signal() -> Any:
    """1.2 s that sweeps through the speech band, with noise and a pause; int16."""
    time = np.arange(28_800) / 24_000
    generator = np.random.default_rng(10)
    tone = np.sin(2 * np.pi * (120 + 900 * time) * time) * (0.3 + 0.2 * np.sin(9 * time))
    audio = tone + 0.05 * generator.normal(0, 1, len(time))
    audio[12_000:14_000] *= 0.001
    return np.round(np.clip(audio, -1, 1) * 20_000).astype(np.int16)


def dvae(reference: live.Reference) -> None:
    """Mel and samples from codes, and codes from audio; by the installed rule of the quantiser."""
    import torch

    codes = torch.from_numpy(np.random.default_rng(11).integers(0, 625, (1, 4, 24)))
    audio = signal()
    with torch.inference_mode():
        mel = reference.dvae(codes.clone())
        log_mel = reference.dvae.preprocessor_mel(torch.from_numpy(audio / np.float32(32_768)))
        found = {
            f"encoded{cut}": reference.dvae.sample_audio(audio[:cut] / np.float32(32_768)).numpy()
            for cut in (len(audio), 24_123, 3_000)
        }
    installed = tuple(map(int, version("vector_quantize_pytorch").split(".")[:2]))
    save(
        f"dvae_{'tanh' if installed < (1, 20) else 'symmetric'}",
        codes=codes[0].T.numpy().astype(np.int16),
        mel=mel.numpy(),
        samples=reference.samples(mel).numpy(),
        audio=audio,
        log_mel=log_mel.numpy().astype(np.float32),
        **{key: value.astype(np.int16) for key, value in found.items()},
    )


def speakers(reference: live.Reference) -> None:
    """Speaker strings, decoded and encoded; the statistics are made here, not the package's."""
    import pybase16384
    import torch

    hidden = reference.sizes.hidden
    generator = np.random.default_rng(12)
    deviation = generator.uniform(0.2, 2, hidden).astype(np.float16)
    mean = generator.normal(0, 1, hidden).astype(np.float16)
    statistics = pybase16384.encode_to_string(np.concatenate([deviation, mean]).tobytes())
    speaker = reference.speaker(hidden, statistics)
    made = []
    for seed in range(6):
        torch.manual_seed(seed)
        code = speaker.sample_random()
        vector = speaker._decode(code)
        ones = torch.zeros(1, 1, hidden)
        ids = torch.full((1, 1, 4), 5)
        applied = speaker.apply(ones, code, ids, 5, torch.device("cpu"))[0, 0]
        made.append({"code": code, "vector": vector.tolist(), "applied": applied.tolist()})
    prompts = []
    for steps in (1, 2, 3, 4, 5, 6, 7, 40):
        codes = generator.integers(0, 625, (4, steps))
        code = speaker.encode_prompt(torch.from_numpy(codes))
        assert np.array_equal(speaker.decode_prompt(code).numpy(), codes)
        prompts.append({"code": code, "codes": codes.tolist()})
    constant = np.full(hidden, 0.5, np.float16)  # packs well: another tail of base16384
    made.append({"code": speaker._encode(torch.from_numpy(constant)), "vector": constant.tolist()})
    save_json(
        "speakers",
        {
            "statistics": statistics,
            "deviation": deviation.tolist(),
            "mean": mean.tolist(),
            "speakers": made,
            "prompts": prompts,
        },
    )


MAKERS: dict[str, Callable[[live.Reference], None]] = {
    maker.__name__: maker for maker in (tokens, gpt, sampling, vocoder, dvae, speakers)
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=MAKERS, action="append")
    options = parser.parse_args()
    if reason := live.available():
        print(f"the reference is {reason}", file=sys.stderr)
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        reference = live.load(checkpoints.tiny(Path(folder) / "tiny"))
        for name in options.only or MAKERS:
            print(name, file=sys.stderr)
            MAKERS[name](reference)
    return 0


if __name__ == "__main__":
    sys.exit(main())
