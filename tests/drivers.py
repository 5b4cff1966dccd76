"""Compiles libraries that behave like NVIDIA's driver, so that nothing has to be patched in the code."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("fake_driver.c")


def compiler() -> list[str]:
    """The command; skips the test where there is no C compiler."""
    found = shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler (cc)")
    return [found]


def driver(folder: Path, **macros: object) -> Path:
    """A driver with these properties and defects, see the source; a file for each set of them."""
    name = "-".join(f"{name}{value}" for name, value in sorted(macros.items())).replace('"', "")
    library = folder / f"libcuda-{name}.so"
    defined = [f"-D{name}={value}" for name, value in macros.items()]
    command = [*compiler(), "-shared", "-fPIC", "-w", *defined, "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True)
    return library
