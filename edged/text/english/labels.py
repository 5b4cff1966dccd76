"""Words before a number that make it the name of a thing: Door 4, lot 77-A, P-101. Pure; any thread.

Neighbours: `quantities` and `forms` ask, since a letter after such a number is no unit.
"""

from __future__ import annotations

import re

LABELS = (
    "Door Line Gate Zone Room Building Section Unit Terminal Platform Bay Track Level Floor Row Seat "
    "Class Type Model Figure Table Appendix Step Station Dock Exit Hall Machine Robot Conveyor Belt "
    "Pump Valve Cell Ar Sector Block Lane Channel Slot Port Bus Route Apartment Suite Stage Phase Group "
    "Area Panel Cabinet Rack Aisle Wing Tank Motor Axis Press"
).split()
_LABEL = re.compile(rf"(?<![A-Za-z-])(?:{'|'.join(LABELS)})s? (?:number )?$", re.I)
_SHELVES = (
    "Lot Bin Batch Shelf Box Part Tag Pallet Locker Column Position Item Job Order Crate Drawer".split()
)
_SHELF = re.compile(rf"(?<![A-Za-z-])(?:{'|'.join(LABELS + _SHELVES)})s? (?:number )?$", re.I)
_HYPHENED = re.compile(r"(?<![^\W_])(?![AD]C-)[A-Za-z]{1,24}-$")


def is_labelled(match: re.Match[str]) -> bool:
    """Whether it is the number of a thing: Door 4, Line 4B. Then a letter after it is no unit."""
    start = match.start()
    return _LABEL.search(match.string, max(0, start - 24), start) is not None


def is_shelved(match: re.Match[str]) -> bool:
    """As `is_labelled`, with words of which counts are as usual: lot 77-A."""
    return _behind(_SHELF, match)


def is_in_a_code(match: re.Match[str]) -> bool:
    """Whether letters and a hyphen stand right before it: P-101A."""
    return _behind(_HYPHENED, match)


def _behind(pattern: re.Pattern[str], match: re.Match[str]) -> bool:
    """Whether such a word stands right before a match."""
    return pattern.search(match.string, max(0, match.start() - 26), match.start()) is not None
