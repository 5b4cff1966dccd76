"""Letter words: acronyms and codes that are spelled, and those that are spoken as words.

Without a dictionary the rule is: short words of capitals are spelled where no English word is spelled so (no
vowel, or consonants that do not begin or end one: GPU, AGV), and in the plural (RTUs); else only where they
are listed here. Words written in capitals for emphasis (STOP, DOOR OPEN) stay words.
"""

from __future__ import annotations

import re

from edged.text.english import words
from edged.text.english.rule import Reading, Rule, Say, rule
from edged.text.points import kept

SPELLED = frozenset(
    """ABC ABS AC ACK ADC AED AES AFK AGV AI AIS AKA AMR AOI AOK API APN APU ARP ASAP AST ATA ATM ATV AVR AWD
    AWG
    AWS BLE CAE CE CEE CEO CEST CET CFO CIA CIO CIP CO CPU CSA CTO DAC DIY DOA DOB DOE EAN ECG ECU EDI EDM
    EEA EGR EHS EIA EIP EKG EMC EMI EMS EN EOL EPA EPC EPDM EPS ERP ESA ESD ESP EST ETA ETD EU EUR EV EVA
    FAA FAQ FBI FCC FDA FIA FPGA FTE GMO GPIO HDMI HMI IBC IBM ICT ICU ID IDE IDS IEC IED IFM IMEI IMO IO
    IOT IOU IP IPA IPC IPS IQ IR IRC IRQ IRS ISA ISBN ISDN ISM ISO ISP ITU IU IV LCD LED MEP MES MOU MRI NA
    NEC NIO NOC OBD OCR ODM OE OEE OEM OK OLED OPC OS OSD OTA PA PCIE PDA PE PID PIR POE POS PPE PVA QA ROI
    ROV RPA RSVP SAE SAP SKU SMA SOC SOP SOS SUV TBA TIA UAE UAT UAV UI UK UL UN UPC UPS URI URL USA USB USD
    UTC UV UVC UX VA VIP VOC""".split()
)
SPOKEN = frozenset("NTH SH PSST HMM SHH BRR GRR MR MRS MS DR ST LTD VS NR KG KM MM CM".split())
_VOWELS = frozenset("AEIOUYaeiouy")
_SHORT = 5  # letters of a word whose spelling is looked at
_PLURAL = 4  # letters of a word before a small s
# Consonants, two and more, that English words begin and end with.
_ONSETS = frozenset(
    """BL BR CH CL CR CZ DR DW FL FR GH GL GN GR KN KH KR LL PH PL PR PS QU RH SC SCH SCR SH SHR SK SL SM SN
    SP SPH SPL SPR SQ SQU ST STR SV SW TH THR TR TS TW VL WH WR""".split()
)
_CODAS = frozenset(
    """BB BT CH CK CT DD FF FT GG GH GHT GN GS HM HN HT LB LC LD LF LK LL LM LN LP LT LCH LTH MB MM MN MP MPH
    MPT NC NCH ND NG NGTH NK NN NST NT NTH NX PH PP PS PT RB RC RCH RD RF RG RK RL RLD RM RN RNT RP RPH RR
    RST RSH RT RTH RTZ SC SH SK SM SP SS ST TCH TH TT TZ WK WD WL WN XT ZZ DTH PTH FTH XTH DST LTZ LSH CHT
    LFT""".split()
)
_HEAD = re.compile(r"[^AEIOUY]{2,}")
_TAIL = re.compile(r"(?<=[AEIOUY])([^AEIOUY]{2,})$")

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

_SHORTEST = frozenset(
    "ad ah am an as at be by co do go ha he hi id if in is it me my no of oh on or ox so to up us we".split()
)


def is_spelled(word: str) -> bool:
    """Whether a word of capitals is said letter by letter."""
    if word in SPELLED:
        return True
    if len(word) < 2 or word in SPOKEN:
        return False
    if len(word) == 2:
        return word.lower() not in _SHORTEST
    return not _VOWELS.intersection(word) or (len(word) <= _SHORT and not _like_a_word(word))


def _like_a_word(word: str) -> bool:
    """Whether the consonants at both ends of a word of capitals are those of English words."""
    head, tail = _HEAD.match(word), _TAIL.search(word)
    if head and head[0] not in _ONSETS:
        return False
    if tail is None or tail[1] in _CODAS:
        return True
    plural = tail[1].removesuffix("S")
    return plural != tail[1] and (plural in _CODAS or len(plural) == 1)


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
    if len(run) == 2 and run.islower() and run not in _SHORTEST:
        return words.spell(run)
    return run if _VOWELS.intersection(run) else words.spell(run)


def _acronym(match: re.Match[str], say: Say) -> Reading | None:
    word = match["word"]
    plural = match["s"] == "s" and len(word) <= _PLURAL and word not in SPOKEN
    if not plural and not is_spelled(word):
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
