"""Drives the reference ChatTTS package on a checkpoint folder, for golden vectors and live parity tests.

Never imported by the product. The package is AGPL-3.0-or-later and is used as it is installed: nothing of it
is copied here. `available()` says why it cannot be used; import it only through this module, because
torchaudio, which it needs for one transform only, is replaced by a stand-in first.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edged.compiler.chattts.checkpoint import Checkpoint
from edged.compiler.chattts.layout import HOP, LEVELS, MELS, N_FFT, SAMPLE_RATE, Sizes, Stack

PACKAGES = ("torch", "ChatTTS", "vocos", "vector_quantize_pytorch", "pybase16384")
INSTALL = "pip install chattts==0.2.5 'transformers<5' torch vocos vector_quantize_pytorch numba pybase16384"


def available() -> str:
    """An empty string, or why the reference cannot be used."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    return f"not installed: {', '.join(missing)} ({INSTALL})" if missing else ""


def stand_in() -> None:
    """Puts a torchaudio with only MelSpectrogram in place of the real one, which needs a matching torch."""
    if "torchaudio" in sys.modules:
        return
    import torch

    class MelSpectrogram(torch.nn.Module):
        """Magnitude mel with HTK triangles, no normalisation; buffers are named as torchaudio names them."""

        def __init__(self, *, sample_rate: int, n_fft: int, hop_length: int, n_mels: int, **rest: Any):
            super().__init__()
            if rest != {"center": True, "power": 1}:
                raise NotImplementedError(f"MelSpectrogram with {rest}")
            self.n_fft, self.hop = n_fft, hop_length
            self.spectrogram = torch.nn.Module()
            self.spectrogram.register_buffer("window", torch.hann_window(n_fft))
            self.mel_scale = torch.nn.Module()
            self.mel_scale.register_buffer("fb", torch.zeros(n_fft // 2 + 1, n_mels))  # loaded later

        def forward(self, audio: Any) -> Any:
            spectrum = torch.stft(
                audio, self.n_fft, self.hop, window=self.spectrogram.window, center=True,
                pad_mode="reflect", return_complex=True,
            )  # fmt: skip
            return torch.matmul(spectrum.abs().transpose(-1, -2), self.mel_scale.fb).transpose(-1, -2)

    def module(name: str, **members: Any) -> types.ModuleType:
        made = types.ModuleType(name)
        made.__spec__ = importlib.machinery.ModuleSpec(name, None)
        made.__dict__.update(members)
        sys.modules[name] = made
        return made

    def absent(*_: Any) -> None:
        raise NotImplementedError("not in the stand-in")

    inner = module("torchaudio.functional.functional", _hz_to_mel=absent, _mel_to_hz=absent)
    functional = module("torchaudio.functional", functional=inner)
    transforms = module("torchaudio.transforms", MelSpectrogram=MelSpectrogram)
    module("torchaudio", __version__="0", transforms=transforms, functional=functional)


@dataclass
class Reference:
    """The reference's own classes, loaded with a checkpoint's weights. All members are torch modules."""

    sizes: Sizes
    tokenizer: Any
    embed: Any
    gpt: Any
    decoder: Any
    dvae: Any
    vocos: Any
    speaker: Any  # the class; an instance needs a statistics string

    def embeddings(self, texts: list[str], speakers: Any = None, prompt: Any = None) -> tuple[Any, Any, Any]:
        """(embeddings, ids, attention mask) of texts, left-padded; speakers: [rows, hidden] or None."""
        import torch

        ids, attention, text = self.tokenizer.encode(texts, self.sizes.codebooks, prompt=prompt)
        emb = self.embed(ids, text).clone()  # out of inference mode
        if speakers is not None:
            for row, speaker in enumerate(torch.as_tensor(speakers)):
                at = slice(row, row + 1)
                emb[at] = self.speaker.apply(
                    None, emb[at], speaker, ids[at], self.tokenizer.spk_emb_ids, torch.device("cpu"),
                    inplace=False,
                )  # fmt: skip
        return emb, ids, attention

    def generate(
        self,
        texts: list[str],
        speakers: Any = None,
        *,
        steps: int,
        refine: bool = False,
        prompt: Any = None,
        processors: Any = (),
        temperature: float = 1.0,
        end: int | None = None,
    ) -> Any:
        """The reference's generator, run to its end: ids [steps, 4] and hiddens [steps, hidden] a row."""
        import torch

        emb, ids, attention = self.embeddings(texts, speakers, prompt)
        count = 1 if refine else self.sizes.codebooks
        *_, result = self.gpt.generate(
            emb,
            ids,
            temperature=torch.tensor([temperature] * count),
            eos_token=(self.tokenizer.eos_token if refine else self.sizes.audio_tokens - 1)
            if end is None
            else end,
            attention_mask=attention,
            max_new_token=steps,
            logits_processors=processors,
            infer_text=refine,
            return_hidden=True,
            show_tqdm=False,
            ensure_non_empty=False,
        )
        return result

    def greedy(self, texts: list[str], speakers: Any = None, **options: Any) -> tuple[Any, list[Any]]:
        """(result, logits of each step [rows x codebooks, tokens]) of argmax decoding without an end."""
        chooser = Greedy(self.tokenizer.eos_token if options.get("refine") else self.sizes.audio_tokens - 1)
        return self.generate(texts, speakers, processors=(chooser,), **options), chooser.logits

    def samples(self, mel: Any) -> Any:
        import torch

        with torch.inference_mode():
            return self.vocos.decode(mel)


class Greedy:
    """A logits processor that keeps the logits and leaves the largest, the end token's excepted."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.logits: list[Any] = []

    def __call__(self, _: Any, scores: Any) -> Any:
        import torch

        self.logits.append(scores.clone())
        allowed = scores.clone()
        allowed[:, self.end] = -torch.inf
        only = torch.full_like(scores, -torch.inf)
        return only.scatter(1, allowed.argmax(1, keepdim=True), 0.0)


def load(path: Path) -> Reference:
    """The reference on a checkpoint folder, its sizes taken from the checkpoint instead of its defaults."""
    stand_in()
    import torch
    from ChatTTS.model import DVAE, GPT, Embed, Speaker, Tokenizer
    from ChatTTS.utils import load_safetensors
    from vocos import Vocos
    from vocos.feature_extractors import MelSpectrogramFeatures
    from vocos.heads import ISTFTHead
    from vocos.models import VocosBackbone

    with Checkpoint.open(path) as checkpoint:
        sizes, root = checkpoint.sizes, checkpoint.root
    cpu = torch.device("cpu")
    tokens = {
        "num_audio_tokens": sizes.audio_tokens,
        "num_text_tokens": sizes.text_tokens,
        "num_vq": sizes.codebooks,
    }
    embed = Embed(sizes.hidden, **tokens)
    embed.load_pretrained(str(root / "Embed.safetensors"), device=cpu)
    gpt = GPT(
        gpt_config={
            "hidden_size": sizes.hidden,
            "intermediate_size": sizes.intermediate,
            "num_attention_heads": sizes.heads,
            "num_hidden_layers": sizes.layers,
            "max_position_embeddings": sizes.max_positions,
            **tokens,
        },
        embed=embed,
    ).eval()
    gpt.load_pretrained(str(root / "gpt"), str(root / "Embed.safetensors"))

    decoder = DVAE(decoder_config=_stack(sizes.decoder), dim=sizes.decoder.inputs)
    decoder.load_pretrained(str(root / "Decoder.safetensors"), cpu)
    dvae = DVAE(
        decoder_config=_stack(sizes.dvae_decoder),
        encoder_config=_stack(sizes.dvae_encoder),
        vq_config={
            "dim": sizes.dvae_encoder.outputs,
            "levels": LEVELS,
            "G": sizes.groups,
            "R": sizes.residuals,
        },
        dim=sizes.dvae_width,
    )
    dvae.load_pretrained(str(root / "DVAE.safetensors"), cpu)
    features = {"sample_rate": SAMPLE_RATE, "n_fft": N_FFT, "hop_length": HOP, "n_mels": MELS}
    backbone = asdict(sizes.vocos)
    vocos = Vocos(
        feature_extractor=MelSpectrogramFeatures(**features, padding="center"),
        backbone=VocosBackbone(
            input_channels=MELS,
            dim=backbone["hidden"],
            intermediate_dim=backbone["intermediate"],
            num_layers=backbone["layers"],
        ),
        head=ISTFTHead(dim=backbone["hidden"], n_fft=N_FFT, hop_length=HOP, padding="center"),
    )
    vocos.load_state_dict(load_safetensors(str(root / "Vocos.safetensors")))
    return Reference(
        sizes=sizes,
        tokenizer=Tokenizer(str(root / "tokenizer")),
        embed=embed.eval(),
        gpt=gpt,
        decoder=decoder.eval(),
        dvae=dvae.eval(),
        vocos=vocos.eval(),
        speaker=Speaker,
    )


def _stack(stack: Stack) -> dict[str, int]:
    if stack.intermediate != 4 * stack.hidden:
        raise ValueError("the reference fixes the inner width of a block at four times its hidden width")
    return {
        "idim": stack.inputs,
        "odim": stack.outputs,
        "hidden": stack.hidden,
        "n_layer": stack.layers,
        "bn_dim": stack.bottleneck,
    }
