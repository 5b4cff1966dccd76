"""What a bundle says about the licence of its weights: LICENSE and NOTICE. CLI process only.

Neighbour: `build.py` calls.
"""

from __future__ import annotations

from pathlib import Path

LICENSE_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE")

NOTICE = """This voice bundle was compiled by edged from a checkpoint of ChatTTS in its published layout.

The weights are those of the checkpoint in another number format; their licence travels with them. The
checkpoint that the 2noise project publishes (Hugging Face: 2Noise/ChatTTS) is licensed CC BY-NC 4.0:
name its authors, and do not use it, or speech made with it, for commercial purposes.
The graphs around the weights were written by edged (Apache-2.0). No source code of ChatTTS is included.

SHA-256 of the files it was compiled from:
{files}
"""
LICENSE = """The weights in this bundle: Creative Commons Attribution-NonCommercial 4.0 International
(SPDX: CC-BY-NC-4.0), the licence of the published ChatTTS checkpoint.
The text of the licence: https://creativecommons.org/licenses/by-nc/4.0/legalcode
"""


def write(root: Path, checkpoint: Path, hashes: dict[str, str]) -> None:
    """The checkpoint's own licence file where it has one, in front of what edged says."""
    own = next((checkpoint / n for n in LICENSE_FILES if (checkpoint / n).is_file()), None)
    text = own.read_text("utf-8", errors="replace") + "\n" if own is not None else ""
    (root / "LICENSE").write_text(text + LICENSE, "utf-8")
    files = "\n".join(f"  {digest}  {file}" for file, digest in hashes.items())
    (root / "NOTICE").write_text(NOTICE.format(files=files), "utf-8")
