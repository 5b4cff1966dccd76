"""`python -m edged` is the `edged` command."""

from edged.cli import main

if __name__ == "__main__":
    main()
