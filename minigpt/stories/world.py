"""What a story is about: people, their things, and who is meant by whom.

The world holds nothing that could not be read from the words said so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

END = "\n"
OPEN, CLOSE = "“", "”"  # quotation marks that know their side; text has the plain ones
PRONOUNS = {"girl": "She", "boy": "He"}
POSSESSIVES = {"girl": "Her", "boy": "His"}
Weights = dict[str, float]


class Teller(Protocol):
    """Says the words: freely (a generator) or those of a given text (a reader)."""

    @property
    def position(self) -> int:
        """Of the next word."""

    def choose(self, slot: str, options: Weights) -> str:
        """Says one of the options, each with a chance in proportion to its weight."""

    def say(self, text: str, slot: str = "form") -> None:
        """Says words that are forced."""

    def relate(self, name: str, gold: Sequence[int], others: Sequence[int] = ()) -> None:
        """Notes that the word said last has to look back at one of `gold`, not at `others`."""


@dataclass(eq=False)
class Thing:
    noun: str
    colour: str
    owner: "Person"
    told: str  # how it was introduced: has, paints or belongs
    nouns: list[int] = field(default_factory=list)  # where it was named
    colours: list[int] = field(default_factory=list)

    @property
    def pairs(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return (self.noun, self.colour), (self.colour, self.noun)

    @property
    def painted(self) -> bool:
        """Its noun was said before its colour, so the noun can remind of it."""
        return self.told == "paints"

    @property
    def given(self) -> bool:
        """Its noun was said before its owner."""
        return self.told == "belongs"


@dataclass(eq=False)
class Person:
    name: str
    surname: str
    child: str  # girl or boy
    names: list[int] = field(default_factory=list)  # where the name was said
    surnames: list[int] = field(default_factory=list)
    things: list[Thing] = field(default_factory=list)


@dataclass(frozen=True)
class Mix:
    """What kinds of stories there are, and how often."""

    two_people: float = 0.55
    same_gender: float = 0.25
    endings: tuple[float, ...] = (0.03, 0.08, 0.2, 0.35, 0.5, 0.65, 0.8)  # after each sentence
    paints: float = 0.4  # things introduced as "Lily paints her ball red"
    who: float = 0.7  # weight of sentences that tell who is who before those that tell who has what
    given: float = 0.25  # as "The red ball belongs to Lily", the others as "Lily has a red ball"
    against: float = 0.04  # weight of asking for a word against the order of introduction
    mismatch: float = 0.5  # of the numbers of an animal and of the one beside it
    held_out: bool | None = False  # True: bind only what training never binds; None: anything


@dataclass
class World:
    mix: Mix
    people: list[Person] = field(default_factory=list)
    subject: Person | None = None  # of the last sentence
    said: str | None = None  # in the last sentence, for a parrot to hear

    @property
    def things(self) -> list[Thing]:
        return [thing for person in self.people for thing in person.things]

    @property
    def named(self) -> dict[str, Person]:
        return {person.name: person for person in self.people}

    def other(self, person: Person) -> Person | None:
        return next((one for one in self.people if one is not person), None)

    def only(self, child: str) -> Person | None:
        """Whom `she`, `her` or `the girl` means: the only one, or else the last subject."""
        fitting = [person for person in self.people if person.child == child]
        if len(fitting) == 1:
            return fitting[0]
        return self.subject if self.subject in fitting else None

    def meant(self, words: dict[str, str]) -> dict[str, Person]:
        """{girl: She, …} -> {She: the person meant}, for those that mean someone."""
        people = {word: self.only(child) for child, word in words.items()}
        return {word: person for word, person in people.items() if person}
