"""The `edged` command, installed or as `python -m edged`.

It imports nothing before its guard: a Ctrl-C while the rest is still being imported must end quietly too.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    try:
        from edged.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:  # another Ctrl-C while the interpreter ends would be an exception that nobody catches
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
