"""Letter words: acronyms and codes that are spelled, and those that are spoken as words.

Without a dictionary the rule is: capitals without a vowel are spelled, with a vowel only where they are
listed here; words written in capitals for emphasis (STOP, DOOR OPEN) stay words.
"""

from __future__ import annotations

import re

from edged.text.english import words
from edged.text.english.rule import Reading, Rule, Say, rule
from edged.text.points import kept

SPELLED = frozenset(
    """ABS AC ACK ADC AED AES AFK AGV AI AIS AKA AMR AOI AOK API APN ARP ASAP AST ATM ATV AVR AWD AWG AWS
    CAE CE CEE CEO CFO CIA CIO CIP CPU CSA CTO DAC DIY DOA DOB DOE EAN ECG ECU EDI EEA EGR EIA EIP EKG
    EMC EMI EMS EN EOL EPA EPC EPDM EPS ERP ESA ESD ESP ETA ETD EU EUR EV EVA FAA FAQ FBI FCC FDA FIA
    FPGA FTE GMO GPIO HDMI HMI IBC IBM ICU ID IDE IEC IED IFM IMEI IMO IO IOT IOU IP IPA IPC IQ IR IRC
    IRQ IRS ISA ISBN ISDN ISO ISP ITU IU IV LCD LED MEP MES MOU MRI NA NEC NIO NOC OBD OCR ODM OE OEE OEM
    OK OLED OPC OS OSD PA PCIE PDA PE PID PIR POE POS PPE PVA QA ROI ROV RPA RSVP SAE SMA SOC SOP SOS SUV
    TBA TIA UAE UAT UAV UI UK UL UN UPC UPS URI URL USA USB USD UTC UV UVC UX VA VIP VOC""".split()
)
SPOKEN = frozenset("NTH SH PSST HMM SHH BRR GRR MR MRS MS DR ST LTD VS NR KG KM MM CM".split())
_VOWELS = frozenset("AEIOUYaeiouy")

SLASHED = {
    "I/O": "I O", "S/N": "S N", "P/N": "P N", "A/C": "A C", "N/A": "not applicable", "N/C": "N C",
    "N/O": "N O", "R/W": "R W", "D/A": "D A", "A/D": "A D", "w/o": "without", "w/": "with",
    "W/O": "without", "c/o": "care of", "TCP/IP": "T C P I P", "and/or": "and or", "Q/A": "Q A",
    "Q&A": "Q and A", "R&D": "R and D", "P&ID": "P and I D", "AT&T": "A T and T", "O&M": "O and M",
    "M&A": "M and A", "24/7": "twenty-four seven",
}  # fmt: skip
IRREGULAR = {
    "IEEE": "I triple E", "IIOT": "I I O T", "IIoT": "I I O T", "IoT": "I O T", "PoE": "P O E",
    "PhD": "P H D", "pH": "P H",
}  # fmt: skip


def is_spelled(word: str) -> bool:
    """Whether a word of capitals is said letter by letter."""
    if word in SPELLED:
        return True
    return len(word) > 1 and word not in SPOKEN and not _VOWELS.intersection(word)


def letters(run: str) -> str:
    """A run of letters of an address or a code: spelled, or a word in small letters."""
    if len(run) == 1 or run.upper() in (
        "WWW",
        "HTTP",
        "HTTPS",
        "FTP",
        "HTML",
        "MQTT",
        "IO",
        "UK",
        "EU",
        "TV",
    ):
        return words.spell(run)
    if run.isupper():
        return words.spell(run) if len(run) <= 3 or is_spelled(run) else run.lower()
    return run if _VOWELS.intersection(run) else words.spell(run)


def _acronym(match: re.Match[str], say: Say) -> Reading | None:
    word = match["word"]
    if not is_spelled(word):
        return None
    return Reading(
        "acronym", words.spell(word) + ("'s" if match["s"] else "")
    )  # one letter takes 's in the plural


def _listed(match: re.Match[str], say: Say) -> Reading:
    return Reading("acronym", IRREGULAR[match[0]])


def _slashed(match: re.Match[str], say: Say) -> Reading:
    return Reading("acronym", SLASHED[match[0]])


def _dotted(match: re.Match[str], say: Say) -> Reading:
    """U.S., E.U.: the last point stays where it can end a sentence."""
    return Reading("acronym", words.spell(match[1]) + kept(match.string, match.end()))


def _either(entries: list[str]) -> str:
    return "|".join(map(re.escape, sorted(entries, key=len, reverse=True)))


RULES_FIRST: list[Rule] = [
    rule(
        rf"(?<![\w/])(?:{_either(list(SLASHED))})(?![\w/])(?<!w/)|(?<![\w/])w/(?=[ A-Za-z])(?!o\b)",
        _slashed,
        digits=False,
    ),
]
RULES: list[Rule] = [
    rule(rf"(?<![\w])(?:{_either(list(IRREGULAR))})(?![\w])", _listed, digits=False),
    rule(r"(?<![\w.])((?:[A-Z]\.){2,6})(?![\w])", _dotted, digits=False),
    rule(r"(?<![^\W\d])(?P<word>[A-Z]{2,12})(?P<s>'s|s)?(?![\w]|'\w)", _acronym, digits=False),
]
