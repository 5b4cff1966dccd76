"""Loads the TensorRT plugin library of a bundle, which registers itself with TensorRT's plugin registry.

Loading thread only, after TensorRT was imported, whose library the plugin is linked against, and before a
network that uses the plugin is parsed or a plan deserialised. The file's hash was checked with its bundle.
The library stays for the life of the process: TensorRT keeps addresses into it, and its registry takes no
second one. What is loaded is therefore a fact of the process, and remembered here. Neighbours: `trt_open.py`
and the compiler call; the source is `deploy/jetson/plugin`.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
from pathlib import Path

from edged import log
from edged.errors import PluginUnusable

logger = logging.getLogger("edged.engine")
VERSION = 1  # of the nodes that `edged.compiler.chattts.plugged` writes
_loaded: set[str] = set()  # hashes of the libraries of this version, the one that was registered included


def load_plugin(path: Path) -> None:
    """Once more for the same content does nothing, wherever the file is: a bundle that is being built has a
    copy of the library, and every version of a bundle has its own. Raises `PluginUnusable`."""
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest in _loaded:
            return
        library = ctypes.CDLL(str(path.resolve()), mode=ctypes.RTLD_GLOBAL)
        found = int(library.edged_plugin_version())
    except OSError as error:  # another TensorRT, CUDA or processor, or no file
        raise PluginUnusable(f"the TensorRT plugin cannot be loaded: {error}") from error
    except AttributeError as error:
        raise PluginUnusable(f"{path} is no TensorRT plugin of edged") from error
    version, registered = abs(found), found > 0
    if version not in (0, VERSION):
        raise PluginUnusable(f"{path}: the plugin has version {version}, this edged needs {VERSION}")
    if not registered and not (version and _loaded):
        raise PluginUnusable(
            f"{path}: TensorRT refused the plugin",
            "another library in this process has registered it; restart edged",
        )
    if not registered:
        text = f"{path}: another build of the plugin, of the same version, is loaded and goes on being used"
        log.event(logger, logging.INFO, text)
    _loaded.add(digest)
