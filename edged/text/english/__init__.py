"""English readings: numbers, dates, units, codes and signs in words. Text thread; knows nothing about voices."""

from edged.text.english.reader import English

__all__ = ["English"]
