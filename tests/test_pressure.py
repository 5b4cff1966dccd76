"""The levels of memory as a state machine: what holds for any sequence of readings."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from edged.pressure import Level, Pressure, Rules, Verdict

BUDGET = 1000.0
RULES = Rules()
UP = {Level.HIGH: RULES.high * BUDGET, Level.FULL: RULES.full * BUDGET}
# Values at, just beside and far from the thresholds, so that every edge is met.
EDGES = [UP[Level.HIGH], UP[Level.FULL], *((share - RULES.back) * BUDGET for share in (0.80, 0.90))]
MB = st.one_of(st.floats(0.0, 2 * BUDGET), st.sampled_from([e + d for e in EDGES for d in (-0.1, 0.0, 0.1)]))
READINGS = st.lists(MB, max_size=60)
GAPS = st.lists(st.floats(0.0, 100.0), min_size=60, max_size=60)


def run(readings: list[float], rules: Rules = RULES, gaps: list[float] | None = None) -> list[Verdict]:
    """Readings a second apart, or `gaps` apart."""
    pressure, now, verdicts = Pressure(BUDGET, rules), 100.0, []
    for number, used in enumerate(readings):
        verdicts.append(pressure.see(now, used))
        now += 1.0 if gaps is None else gaps[number]
    return verdicts


@given(READINGS)
def test_a_level_rises_only_after_enough_readings_in_a_row(readings: list[float]) -> None:
    for at, verdict in enumerate(run(readings)):
        if verdict.level > verdict.before:
            recent = readings[max(0, at + 1 - RULES.readings) : at + 1]
            assert len(recent) == RULES.readings
            assert min(recent) >= UP[verdict.level]


@given(READINGS)
def test_enough_readings_in_a_row_always_raise_it(readings: list[float]) -> None:
    verdicts = run(readings)
    for level, threshold in UP.items():
        for end in range(RULES.readings, len(readings) + 1):
            if min(readings[end - RULES.readings : end]) >= threshold:
                assert verdicts[end - 1].level >= level


@given(READINGS)
def test_it_falls_only_after_enough_readings_well_below(readings: list[float]) -> None:
    for at, verdict in enumerate(run(readings)):
        if verdict.level < verdict.before:
            recent = readings[at + 1 - RULES.readings : at + 1]
            assert max(recent) < UP[verdict.before] - RULES.back * BUDGET


@given(READINGS)
def test_every_change_begins_where_the_last_ended(readings: list[float]) -> None:
    level = Level.OK
    for verdict in run(readings):
        assert verdict.before is level
        level = verdict.level


@given(st.lists(st.tuples(MB, st.floats(0.0, BUDGET)), max_size=60))
def test_more_memory_never_means_a_lower_level(pairs: list[tuple[float, float]]) -> None:
    less = run([used for used, _ in pairs])
    more = run([used + extra for used, extra in pairs])
    assert all(a.level <= b.level for a, b in zip(less, more, strict=True))


@given(st.lists(st.floats(0.85, 0.8999), max_size=40), st.booleans())
def test_between_its_thresholds_a_level_stays_as_it_is(shares: list[float], full: bool) -> None:
    before = [950.0 if full else 820.0] * RULES.readings
    verdicts = run([*before, *(share * BUDGET for share in shares)])[len(before) - 1 :]
    assert {verdict.level for verdict in verdicts} == {Level.FULL if full else Level.HIGH}


@given(READINGS, GAPS, st.floats(0.1, 50.0))
def test_it_gives_up_exactly_when_it_was_full_for_long_enough(
    readings: list[float], gaps: list[float], lasting_s: float
) -> None:
    """Nobody looked in a long gap (a suspended machine), so no more than gap_s of it counts."""
    full_s = 0.0
    verdicts = run(readings, replace(RULES, lasting_s=lasting_s), gaps)
    for at, verdict in enumerate(verdicts):
        if verdict.level is Level.FULL and verdict.before is Level.FULL:
            full_s += min(max(0.0, gaps[at - 1]), RULES.gap_s)
        else:
            full_s = 0.0
        if abs(full_s - lasting_s) > 1e-6:  # the clock of the machine has its own rounding
            assert verdict.leave == (verdict.level is Level.FULL and full_s > lasting_s)


@given(READINGS)
def test_asked_never_to_give_up_it_never_does(readings: list[float]) -> None:
    assert not any(verdict.leave for verdict in run(readings, replace(RULES, lasting_s=0.0)))


@given(READINGS)
def test_it_trims_on_entering_and_then_seldom(readings: list[float]) -> None:
    last: int | None = None
    for at, verdict in enumerate(run(readings)):
        entered = verdict.level is Level.FULL and verdict.before is not Level.FULL
        if entered:
            assert verdict.trim
        elif verdict.trim:
            assert verdict.level is Level.FULL
            assert last is not None
            assert at - last >= RULES.trim_every_s
        last = at if verdict.trim else last


def test_a_leak_goes_through_every_stage_in_order() -> None:
    verdicts = run([10.0 * second for second in range(200)])
    seen = [v.level for v in verdicts if v.level is not v.before]
    assert seen == [Level.HIGH, Level.FULL]
    full = next(at for at, v in enumerate(verdicts) if v.level is Level.FULL)
    leaves = next(at for at, v in enumerate(verdicts) if v.leave)
    assert leaves - full == RULES.lasting_s
