"""English readings: numbers, dates, units, codes and signs in words. Text thread (and the CLI)."""

from edged.text.english.reader import English

__all__ = ["English"]
