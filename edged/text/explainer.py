"""Goes through a text as it is prepared for speech, and fills the account of it. Text thread.

Neighbours: `prepare` does the work, `explain` has the account, `stage` runs this a step at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from edged.job import Params
from edged.text.explain import Account
from edged.text.passage import language_of
from edged.text.prepare import Preparer
from edged.text.reading import Stretch
from edged.text.script import Script


def fill(account: Account, preparer: Preparer, script: Script, params: Params) -> Iterator[None]:
    """Lazily: a step is a sentence or so. Raises what a job of the text would."""
    account.skip(script.skipped)
    for step in preparer.steps(script, account.voice, params):
        if isinstance(step, Stretch):
            said = "".join(one.text for one in step.said)
            account.read(step.written, step.language, step.voice, step.figures, said)
        else:
            account.skip(step.skipped)
            account.speak(step, language_of(step.said))
            for warning in step.warnings:
                account.warn(warning)
        yield
