"""The memory plan: joining loses no byte, and the table adds up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edged.engine.api import TensorSpec
from edged.engine.plan import PlanRow, bound_row, buffer_row, joined, table, total_mb, weights_row

names = st.from_regex(r"[a-c](\.[a-c]){0,2}(\.?\d{1,2})?", fullmatch=True)
rows = st.lists(
    st.builds(
        PlanRow,
        name=names,
        shape=st.sampled_from([(4, 8), (100, 1000)]),
        dtype=st.sampled_from(["float32", "int64"]),
        megabytes=st.floats(0, 300),
        kind=st.sampled_from(["buffer", "weights", "bound"]),
    ),
    max_size=30,
    unique_by=lambda row: row.name,
)


@given(rows)
def test_joining_keeps_every_row_and_every_byte(given_rows: list[PlanRow]) -> None:
    shown = joined(given_rows)
    assert sum(row.rows for row in shown) == len(given_rows)
    for kind in ("buffer", "weights", "bound"):
        before = total_mb(r for r in given_rows if r.kind == kind)
        assert abs(before - total_mb(r for r in shown if r.kind == kind)) < 1e-6
    assert [row.megabytes for row in shown] == sorted((row.megabytes for row in shown), reverse=True)


def test_layers_become_one_line_and_small_ones_another() -> None:
    layers = [buffer_row(TensorSpec(f"past_k.{n}", "float32", (4, 12, 1024, 64)), "v.gpt") for n in range(20)]
    small = [buffer_row(TensorSpec(name, "int64", (4,)), "v.gpt") for name in ("end", "top_k", "last")]
    shown = joined(
        [*small, weights_row("v.gpt", 130_000_000), *layers, bound_row("limits.reply_mb", 64 << 20)]
    )
    assert [row.name for row in shown] == [
        "v.gpt.past_k.0..19",
        "v.gpt.weights",
        "limits.reply_mb",
        "v.gpt.* (3 small)",
    ]
    lines = table(shown, 1500)
    assert "20 x 4x12x1024x64" in lines[1]
    assert "251.66" in lines[1]
    total = total_mb(shown)
    assert lines[-1].split()[:4] == ["total", f"{total:.2f}", "of", "1500"]
    ends = {line.index(size) + len(size) for line, size in zip(lines[1:3], ("251.66", "130.00"), strict=True)}
    assert len(ends) == 1, "the sizes stand below each other"
