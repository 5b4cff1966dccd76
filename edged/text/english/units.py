"""Units of measurement: symbols, where case matters, and their names.

Names and the order of "square" and "cubic" follow the SI Brochure; the spelling and the plurals are American.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple


class Unit(NamedTuple):
    one: str
    many: str


class Found(NamedTuple):
    """A unit in a text. end: where it ends; alone: it may stand without a number."""

    one: str
    many: str
    end: int
    alone: bool


_PREFIXES = {
    "Q": "quetta", "R": "ronna", "Y": "yotta", "Z": "zetta", "E": "exa", "P": "peta", "T": "tera", "G": "giga",
    "M": "mega", "k": "kilo", "h": "hecto", "da": "deca", "d": "deci", "c": "centi", "m": "milli", "µ": "micro",
    "u": "micro", "n": "nano", "p": "pico", "f": "femto", "a": "atto",
}  # fmt: skip
# symbol: name, plural ("" adds s, "=" is the same), prefixes in use
_PREFIXED = """
m meter - T G M k d c m µ u n p f
g gram - k d c m µ u n p
s second - m µ u n p f
A ampere - k M m µ u n p
V volt - k M G m µ u n
W watt - k M G T m µ u n p
J joule - k M G m µ
N newton - k M m µ d
Pa pascal - k M G h m
Hz hertz = k M G T m
K kelvin - m µ
mol mole - m µ k n
cd candela - m
lm lumen - k
lx lux = k m
C coulomb - m µ n p
F farad - m µ u n p
H henry henries m µ u n
S siemens = m µ k
T tesla - m µ n
Wb weber - m
Ω ohm - k M G T m µ
ohm ohm - k M
Ohm ohm - k M
Bq becquerel - k M G T
Gy gray - m µ k c
Sv sievert - m µ u n
kat katal - m µ n
l liter - m µ u d c h n
L liter - m µ u d c h n
t metric_ton - k M G
bar bar = m k
eV electronvolt - k M G m T
Wh watt_hour - k M G T m
Ah ampere_hour - m k
VA volt_ampere - k M m
var var - k M
bit bit - k M G T
B byte - k M G T P
Bd baud = k M
P poise = c
St stokes = c
rad radian - m µ k
dB decibel - .
"""
_NO_BARE = {"C", "F", "H", "B", "P", "T", "S", "K", "Bd", "St", "Gy"}  # letters as often as units
_PLAIN = """
min minute minutes
h hour hours
hr hour hours
hrs hour hours
d day days
wk week weeks
yr year years
yrs year years
sec second seconds
secs second seconds
mins minute minutes
H henry henries
F farad farads
K kelvin kelvins
S siemens siemens
T tesla teslas
C coulomb coulombs
St stokes stokes
Gy gray grays
P poise poise
ha hectare hectares
sr steradian steradians
rpm revolution_per_minute revolutions_per_minute
RPM revolution_per_minute revolutions_per_minute
r revolution revolutions
rev revolution revolutions
psi P_S_I P_S_I
PSI P_S_I P_S_I
psig P_S_I_gauge P_S_I_gauge
barg bar_gauge bar_gauge
bara bar_absolute bar_absolute
ppm part_per_million parts_per_million
ppb part_per_billion parts_per_billion
% percent percent
%RH percent_relative_humidity percent_relative_humidity
wt% percent_by_weight percent_by_weight
vol% percent_by_volume percent_by_volume
‰ per_mille per_mille
Nm newton_meter newton_meters
kNm kilonewton_meter kilonewton_meters
mNm millinewton_meter millinewton_meters
hp horsepower horsepower
HP horsepower horsepower
mph mile_per_hour miles_per_hour
kph kilometer_per_hour kilometers_per_hour
kmh kilometer_per_hour kilometers_per_hour
gpm gallon_per_minute gallons_per_minute
lpm liter_per_minute liters_per_minute
cfm cubic_foot_per_minute cubic_feet_per_minute
CFM cubic_foot_per_minute cubic_feet_per_minute
bps bit_per_second bits_per_second
kbps kilobit_per_second kilobits_per_second
Mbps megabit_per_second megabits_per_second
Gbps gigabit_per_second gigabits_per_second
KB kilobyte kilobytes
KiB kibibyte kibibytes
MiB mebibyte mebibytes
GiB gibibyte gibibytes
TiB tebibyte tebibytes
fps frame_per_second frames_per_second
dpi dot_per_inch dots_per_inch
px pixel pixels
ft foot feet
in inch inches
yd yard yards
mi mile miles
mil mil mils
oz ounce ounces
lb pound pounds
lbs pound pounds
lbf pound-force pounds-force
kgf kilogram-force kilograms-force
gal gallon gallons
gal. gallon gallons
mmHg millimeter_of_mercury millimeters_of_mercury
inHg inch_of_mercury inches_of_mercury
BTU B_T_U B_T_Us
kcal kilocalorie kilocalories
cal calorie calories
AWG gauge gauge
VDC volt_D_C volts_D_C
VAC volt_A_C volts_A_C
Vdc volt_D_C volts_D_C
Vac volt_A_C volts_A_C
ADC ampere_D_C amperes_D_C
dBm D_B_M D_B_M
dBA decibel_A decibels_A
dB(A) decibel_A decibels_A
pcs piece pieces
pc piece pieces
Kg kilogram kilograms
KG kilogram kilograms
kgs kilogram kilograms
KM kilometer kilometers
KW kilowatt kilowatts
Kw kilowatt kilowatts
kw kilowatt kilowatts
KV kilovolt kilovolts
KVA kilovolt_ampere kilovolt_amperes
Khz kilohertz kilohertz
KHz kilohertz kilohertz
khz kilohertz kilohertz
Mhz megahertz megahertz
Ghz gigahertz gigahertz
hz hertz hertz
HZ hertz hertz
kpa kilopascal kilopascals
Kpa kilopascal kilopascals
° degree degrees
°C degree_Celsius degrees_Celsius
°F degree_Fahrenheit degrees_Fahrenheit
°K kelvin kelvins
℃ degree_Celsius degrees_Celsius
℉ degree_Fahrenheit degrees_Fahrenheit
degC degree_Celsius degrees_Celsius
degF degree_Fahrenheit degrees_Fahrenheit
" inch inches
"""


def _table() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for line in _PREFIXED.strip().splitlines():
        symbol, name, plural, *prefixes = line.split()
        many = name if plural == "=" else f"{name}s" if plural == "-" else plural
        entry = Unit(name.replace("_", " "), many.replace("_", " "))
        if symbol not in _NO_BARE:
            units[symbol] = entry
        for prefix in prefixes:
            if prefix in _PREFIXES:
                word = _PREFIXES[prefix]
                units[prefix + symbol] = Unit(word + entry.one, word + entry.many)
    for text, one, many in (line.split() for line in _PLAIN.strip().splitlines()):
        units[text] = Unit(one.replace("_", " "), many.replace("_", " "))
    units["daN"] = Unit("decanewton", "decanewtons")
    for symbol, word in {"kΩ": "kilohm", "MΩ": "megohm", "kohm": "kilohm", "kOhm": "kilohm"}.items():
        units[symbol] = Unit(word, f"{word}s")
    return units


UNITS = _table()
SPACED = frozenset("H F K S T C P r d".split())  # only after a space: else a code, as in 5G, 3C
_SQUARES = {one: one for one in ("km", "m", "cm", "mm", "dm", "ft", "in", "yd", "mi", "µm")}
_LETTERS = re.compile(r"%RH|wt%|vol%|dB\(A\)|° ?[CFK](?![A-Za-z])|[A-Za-zµΩ]{1,6}|[°%‰℃℉\"]")
_POWER = re.compile(r"([²³])|\^([23])(?!\d)|([⁻][¹²³])|\^?-([123])(?!\d)|([23])(?![\w.,]|[-–]\d)")
_ALONE = frozenset(
    """kPa MPa GPa mA µA kA kV mV µV kW MW GW mW kWh MWh Wh mAh Hz kHz MHz GHz mm µm nm cm km kg mg µg ms µs ns mbar
    rpm RPM psi kN MΩ kΩ mΩ Ω °C °F ℃ ℉ ml mL dB dBA dBm kbit Mbit Mbps Gbps kbps kVA MVA Nm VDC VAC ppm ppb
    lx lm mol µF nF pF mH µH µm %RH km/h""".split()
)


def parse(text: str, at: int) -> Found | None:
    """The unit that starts at this place: a symbol, with powers, products and quotients of symbols."""
    per = text.startswith("/", at)
    first = _atom(text, at + 1 if per else at, dividing=per)
    if first is None:
        return None
    one, many, end, alone = first
    if per:
        one = many = f"per {one}"
    for _ in range(3):
        mark = text[end : end + 1]
        if not mark or mark not in "/·*":
            break
        part = _atom(text, end + 1, dividing=mark == "/")
        if part is None:
            break
        one, many = (
            (f"{one} per {part.one}", f"{many} per {part.one}")
            if mark == "/"
            else (f"{one} {part.one}", f"{one} {part.many}")
        )
        end, alone = part.end, True
    return Found(one, many, end, alone)


def _atom(text: str, at: int, *, dividing: bool) -> Found | None:
    match = _LETTERS.match(text, at)
    if match is None:
        return _squared_symbol(text, at)
    unit = UNITS.get(match[0].replace(" ", ""))
    end = match.end()
    if unit is None:
        return None
    one, many = unit
    alone = match[0] in _ALONE
    power = _POWER.match(text, end)
    if power and (power[5] is None or match[0] in _SQUARES):
        figure = power[1] or power[2] or power[3] or power[4] or power[5]
        end = power.end()
        alone = alone or power[1] is not None or power[3] is not None
        if power[3] or power[4]:
            count = figure[-1].translate(str.maketrans("¹²³", "123"))
            one = many = f"per {_to_the(one, count)}" if count != "1" else f"per {one}"
        else:
            count = "2" if figure in "²2" else "3"
            length = match[0] in _SQUARES
            one = _power(one, count, length, dividing)
            many = _power(many, count, length, dividing)
    follows = text[end : end + 1]
    if follows and (follows.isalnum() or follows in "°µΩ_"):
        return None
    return Found(one, many, end, alone)


def _power(name: str, count: str, length: bool, dividing: bool) -> str:
    if length:
        return f"{'square' if count == '2' else 'cubic'} {name}"
    return _to_the(name, count)


def _to_the(name: str, count: str) -> str:
    return f"{name} {'squared' if count == '2' else 'cubed'}"


def _squared_symbol(text: str, at: int) -> Found | None:
    """One character for a whole unit, as in East Asian type: ㎜, ㎡."""
    if at >= len(text) or not "\u3371" <= text[at] <= "\u33df":
        return None
    plain = unicodedata.normalize("NFKC", text[at]).replace("μ", "µ").replace("∕", "/")
    found = parse(plain, 0)
    if found is None or found.end != len(plain):
        return None
    return Found(found.one, found.many, at + 1, True)
