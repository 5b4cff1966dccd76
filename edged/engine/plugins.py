"""Loads the TensorRT plugin library of a bundle, which registers itself with TensorRT's plugin registry.

Loading thread only, after TensorRT was imported, whose library the plugin is linked against, and before a
network that uses the plugin is parsed or a plan deserialised. The file's hash was checked with its bundle.
The library stays for the life of the process: TensorRT keeps addresses into it. Neighbours: `trt.py` calls;
the source is `deploy/jetson/plugin`.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from edged.errors import PluginUnusable

VERSION = 1  # of the nodes that `edged.compiler.chattts.plugged` writes


def load_plugin(path: Path) -> None:
    """Once more for the same file does nothing. Raises `PluginUnusable`."""
    try:
        library = ctypes.CDLL(str(path.resolve()), mode=ctypes.RTLD_GLOBAL)
        found = int(library.edged_plugin_version())
    except OSError as error:  # another TensorRT, CUDA or processor, or no file
        raise PluginUnusable(f"the TensorRT plugin cannot be loaded: {error}") from error
    except AttributeError as error:
        raise PluginUnusable(f"{path} is no TensorRT plugin of edged") from error
    if found == 0:
        raise PluginUnusable(
            f"{path}: TensorRT refused the plugin",
            "another library in this process has registered it; restart edged",
        )
    if found != VERSION:
        raise PluginUnusable(f"{path}: the plugin has version {found}, this edged needs {VERSION}")
