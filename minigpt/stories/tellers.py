"""Two who speak the grammar's words: one makes them up, one reads those of a given text.

random numbers -> words; words -> chances, slots, mistakes
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from minigpt.stories.grammar import tell
from minigpt.stories.words import classes
from minigpt.stories.world import END, Mix, Weights


@dataclass(frozen=True)
class Relation:
    """The word at `query` depends on, or leads to what depends on, the words at `gold`."""

    name: str
    query: int
    gold: tuple[int, ...]
    others: tuple[int, ...]  # the competing candidates


class Narrator:
    """Makes up a story from random numbers."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed).random
        self.words: list[str] = [END]

    @property
    def position(self) -> int:
        return len(self.words)

    def choose(self, slot: str, options: Weights) -> str:  # noqa: ARG002
        left = self.random() * sum(options.values())
        *others, last = options
        for word in others:
            left -= options[word]
            if left < 0:
                break
        else:
            word = last
        self.words.append(word)
        return word

    def say(self, text: str, slot: str = "form") -> None:  # noqa: ARG002
        self.words += (text,) if " " not in text else text.split()

    def relate(self, name: str, gold: Sequence[int], others: Sequence[int] = ()) -> None:
        pass


@dataclass(frozen=True)
class Mistake:
    """A word that does not fit: `kind` is the slot it stands in, or `grammar`."""

    kind: str
    position: int
    word: str
    expected: str


class NotGrammatical(Exception):
    """The story can't go on like this; its only argument is a `Mistake`."""


@dataclass
class Reader:
    """Reads words and finds for each its chance, its slot, and what is wrong with it.

    A word of the right class in the wrong place (another name, say) is noted as a mistake, and
    the story goes on as it should have; at any other surprise the reading ends.
    """

    words: list[str]
    position: int = 1
    surprisals: list[float] = field(default_factory=lambda: [0.0])
    entropies: list[float] = field(default_factory=lambda: [0.0])
    slots: list[str] = field(default_factory=lambda: ["start"])
    mistakes: list[Mistake] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)

    def choose(self, slot: str, options: Weights) -> str:
        total = sum(options.values())
        shares = [weight / total for weight in options.values()]
        word = self.accept(slot, options)
        self.note(slot, -math.log(options[word] / total), sum(-p * math.log(p) for p in shares))
        return word

    def say(self, text: str, slot: str = "form") -> None:
        for word in text.split(" "):
            self.accept(slot, {word: 1.0})
            self.note(slot, 0.0, 0.0)

    def accept(self, slot: str, options: Weights) -> str:
        """The option that the next word is, or the one it should have been."""
        word = self.words[self.position] if self.position < len(self.words) else "(nothing)"
        if word in options:
            return word
        kind = classes().get(word)
        similar = [option for option in options if kind and classes().get(option) == kind]
        mistake = Mistake(slot, self.position, word, " ".join(similar or list(options)[:9]))
        if not similar:
            raise NotGrammatical(mistake)
        self.mistakes.append(mistake)
        return similar[0]

    def note(self, slot: str, surprisal: float, entropy: float) -> None:
        self.slots.append(slot)
        self.surprisals.append(surprisal)
        self.entropies.append(entropy)
        self.position += 1

    def relate(self, name: str, gold: Sequence[int], others: Sequence[int] = ()) -> None:
        relation = Relation(name, self.position - 1, tuple(gold), tuple(others))
        if gold:
            self.relations.append(relation)


def narrate(seed: str, mix: Mix) -> list[str]:
    """The words of a story, the line breaks before and after it included."""
    narrator = Narrator(seed)
    tell(narrator, mix)
    return narrator.words


def read(words: list[str], mix: Mix) -> Reader:
    """Reads a whole story; raises NotGrammatical at the first word that can't stand there."""
    reader = Reader(words)
    tell(reader, mix)
    if reader.position < len(words):
        extra = Mistake("grammar", reader.position, words[reader.position], "the end")
        raise NotGrammatical(extra)
    return reader
