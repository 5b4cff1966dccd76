"""Symbols of units, where case matters, and their names. Data; any thread.

Names follow the SI Brochure; the spelling and the plurals are American.
"""

from __future__ import annotations

from typing import NamedTuple


class Unit(NamedTuple):
    one: str
    many: str


_PREFIXES = {
    "Q": "quetta", "R": "ronna", "Y": "yotta", "Z": "zetta", "E": "exa", "P": "peta", "T": "tera",
    "G": "giga", "M": "mega", "k": "kilo", "h": "hecto", "da": "deca", "d": "deci", "c": "centi",
    "m": "milli", "µ": "micro", "u": "micro", "n": "nano", "p": "pico", "f": "femto", "a": "atto",
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
kb kilobit kilobits
Mb megabit megabits
Gb gigabit gigabits
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
ft-lb foot_pound foot_pounds
ft·lb foot_pound foot_pounds
ft-lbf foot_pound foot_pounds
lb-ft pound_foot pound_feet
lbf-ft pound_foot pound_feet
lbf·ft pound_foot pound_feet
in-lb inch_pound inch_pounds
in·lb inch_pound inch_pounds
in-lbf inch_pound inch_pounds
lb-in pound_inch pound_inches
lbf-in pound_inch pound_inches
lbf·in pound_inch pound_inches
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
