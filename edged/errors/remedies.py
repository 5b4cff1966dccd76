"""How an optional part of edged is installed here: the one place that says so. Leaf; it looks at files only.

A wheel's user, a checkout and a Jetson need different commands. Neighbours: errors put it into their hints.
"""

from __future__ import annotations

from pathlib import Path

JETSON = Path("/etc/nv_tegra_release")
ROOT = Path(__file__).resolve().parent.parent.parent  # of a checkout


def install(extra: str, root: Path = ROOT, jetson: Path = JETSON) -> str:
    """The command for an extra. On a Jetson TensorRT comes with JetPack, and pycuda is compiled for it."""
    if extra == "tensorrt" and jetson.exists():
        return (
            "make JetPack's TensorRT visible to edged's Python and compile pycuda: "
            "sudo deploy/jetson/use-tensorrt.sh && sudo deploy/jetson/install-pycuda.sh "
            "(deploy/jetson/README.md)"
        )
    if (root / "pyproject.toml").is_file() and (root / "edged").is_dir():
        return f"install it in the checkout with: pip install -e '.[{extra}]'"
    return f"install it with: pip install 'edged[{extra}]'"
