"""The memory for replies: never exceeded, and somebody can always go on."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from edged.audio.account import Account, Holding

LIMIT = 1_024_000
PIECE = 50_000


@dataclass
class Maker:
    """A job that adds pieces. A stream's are taken one by one, a whole reply after its last."""

    holding: Holding
    left: int
    pieces: list[int] = field(default_factory=list)


def make(account: Account, maker: Maker, nbytes: int) -> None:
    account.add(maker.holding, nbytes)
    maker.pieces.append(nbytes)
    maker.left -= 1
    if maker.holding.whole and maker.holding.nbytes > account.share:
        maker.left = 0  # `reply` fails it, which frees it
        take(account, maker)


def take(account: Account, maker: Maker) -> None:
    """A client reads."""
    if maker.pieces and maker.holding.whole and not maker.left:
        account.release(maker.holding, maker.holding.nbytes)
        maker.pieces.clear()
    elif maker.pieces and not maker.holding.whole:
        account.release(maker.holding, maker.pieces.pop(0))


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 40)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(1, PIECE), st.booleans()), max_size=300),
)
def test_the_limit_holds_and_every_reply_is_completed_when_clients_read(
    jobs: list[tuple[bool, int]], turns: list[tuple[int, int, bool]]
) -> None:
    account = Account(LIMIT)
    makers = [Maker(Holding(whole), pieces) for whole, pieces in jobs]
    for number, nbytes, reads in turns:
        maker = makers[number % len(makers)]
        if reads:
            take(account, maker)
        elif maker.left and account.room(maker.holding):
            make(account, maker, nbytes)
        assert account.total <= LIMIT + PIECE
        assert account.total == sum(sum(m.pieces) for m in makers)
    while any(m.left for m in makers):
        for maker in makers:
            while maker.pieces and not (maker.holding.whole and maker.left):
                take(account, maker)
        able = [m for m in makers if m.left and account.room(m.holding)]
        assert able, "all wait for each other"
        make(account, able[-1], PIECE)
        assert account.total <= LIMIT + PIECE
    for maker in makers:
        while maker.pieces:
            take(account, maker)
    assert account.total == 0
    assert all(account.room(Holding(whole)) for whole in (True, False))


def test_a_short_reply_does_not_wait_for_long_ones() -> None:
    account = Account(LIMIT)
    oldest, long, short = Holding(True), Holding(True), Holding(True)
    account.add(oldest, 1_000)
    while account.room(long):
        account.add(long, 10_000)
    assert account.room(oldest)
    assert account.room(short)
    account.add(short, account.small)
    assert account.room(short)
    account.add(short, 1)
    assert not account.room(short)
    account.release(oldest, oldest.nbytes)
    assert account.room(long)  # the oldest now
