"""Whether a text is a story by the grammar's rules, and what in it contradicts what came before.

text -> Verdict
"""

from dataclasses import dataclass

from minigpt.stories.spelling import unspell
from minigpt.stories.tellers import Mistake, NotGrammatical, read
from minigpt.stories.world import END, Mix

ANY = Mix(held_out=None)


@dataclass(frozen=True)
class Verdict:
    """`mistakes` in order; a story that is not grammatical has one that ended the reading."""

    grammatical: bool
    mistakes: tuple[Mistake, ...]

    @property
    def consistent(self) -> bool:
        """Every name, colour, thing, pronoun and verb is the one it has to be."""
        return self.grammatical and not self.mistakes


def check(text: str) -> Verdict:
    """Reads one story, without the line breaks around it."""
    try:
        return Verdict(True, tuple(read([END, *unspell(text), END], ANY).mistakes))
    except NotGrammatical as error:
        return Verdict(False, error.args)
