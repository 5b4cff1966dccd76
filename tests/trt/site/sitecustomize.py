"""Python reads this at its start where the folder is on its path: stand-ins for TensorRT in every process.

EDGED_TEST_LEFT names a file in which a process that ends tells what it has left on the stand-in for a GPU.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from pathlib import Path

from edged.engine import trt_runtime
from edged.voices import child
from tests.trt import standin

trt_runtime.deserialize = standin.deserialize
# The process of a trial is isolated, and reads no such file by itself.
child._BEGIN = child._BEGIN.replace("runpy.run_module", "import sitecustomize; runpy.run_module")
if "build" in sys.orig_argv:
    from edged.compiler import trt
    from tests.trt import standin_builder

    trt.tensorrt = lambda: standin_builder


def _tell() -> None:
    from tests.cuda.fake import Fake

    Path(os.environ["EDGED_TEST_LEFT"]).write_text(json.dumps(Fake(Path("libcuda.so.1")).left()))


if os.environ.get("EDGED_TEST_LEFT"):
    atexit.register(_tell)
