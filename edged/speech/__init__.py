"""Who is heard when: several clients share one loudspeaker. Pure Python: no thread, no clock, no sound.

`options` says what a job wishes, `rules` what it does to one that is heard, `queue` keeps the order and tells
what is to be done (`actions`), `history` what was heard. The one owner of queue and history guards them by
its lock.
"""
