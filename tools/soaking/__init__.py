"""The parts of tools/soak: see the first lines of that file."""
