"""Latin letters inside Chinese: which are said one by one and which are a word. Pure tables.

A word in capitals that is neither known here nor long is an abbreviation (PLC, CNC); the voice says its
letters because they stand apart. Neighbours: `net.py`, `codes.py`.
"""

from __future__ import annotations

import re

_BLANK_BESIDE_HAN = re.compile(r"\s+(?=[^\x00-\x7f])|(?<=[^\x00-\x7f])\s+")
_BLANKS = re.compile(r"\s+")
LETTERS_AT_MOST = 5  # in an abbreviation; longer words in capitals are words

# Words that machines and panels write in capitals, and abbreviations that are said as a word.
SAID_AS_WORDS = frozenset(
    """
ALARM ALERT AND ARE AUTO BACK BYPASS CLEAR CLOSE DELAY DOOR DOWN EDIT ENTER ERROR EXIT FAIL FAST FAULT
FILE FOR FORCE FROM FULL HAND HELP HIGH HOLD HOME HOT IDLE INFO INPUT ITEM JOB JOG LEFT LEVEL LIGHT LINE
LOAD LOCAL LOCK LOW MAIN MENU MODE MOVE NEXT NORMAL NOT OFF OK ON ONLY OPEN OVER PAGE PASS PAUSE PLEASE
POWER PRESS PUMP PUSH READY RED GREEN BLUE REMOTE RESET RETRY RIGHT RUN SAFE SAVE SETUP SHIFT SLOW SPEED
START STATE STEP STOP SYSTEM TEST THE TIME TOOL TRIP UNIT UP USER VALVE WAIT WARN YES ZERO ZONE WIFI APP
NASA LASER MODBUS PROFINET RADAR SCADA LINUX PYTHON BASIC CAM EXCEL WORD SIEMENS BOSCH FANUC
""".split()
)


def letters(word: str) -> str:
    """One by one: spaced capitals."""
    return " ".join(word.upper())


def is_abbreviation(word: str) -> bool:
    """word: ASCII letters."""
    return 2 <= len(word) <= LETTERS_AT_MOST and word.isupper() and word not in SAID_AS_WORDS


def tidy(said: str) -> str:
    """Blanks only between Latin words and letters."""
    return _BLANK_BESIDE_HAN.sub("", _BLANKS.sub(" ", said).strip())
