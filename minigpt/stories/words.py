"""The stories' words, by what they can stand for.

words.yaml -> lists of words
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

Pair = tuple[str, str]  # one, many


@dataclass(frozen=True)
class Words:
    """Lists of words; `animals` and `doings` are pairs of one and many."""

    girls: list[str]
    boys: list[str]
    surnames: list[str]
    colours: list[str]
    things: list[str]
    animals: list[Pair]
    doings: list[Pair]
    places: list[str]
    features: list[str]
    feelings: list[str]
    foods: list[str]
    ages: list[str]
    sights: list[str]
    skies: list[str]
    times: list[str]

    @property
    def names(self) -> list[str]:
        return self.girls + self.boys

    @property
    def lexicon(self) -> list[str]:
        """What songs are made of: all words that can be bound to another."""
        return self.names + self.surnames + self.colours + self.things


@cache
def words() -> Words:
    text = files("minigpt.stories").joinpath("words.yaml").read_text(encoding="utf-8")
    return Words(**{name: read_list(line) for name, line in yaml.safe_load(text).items()})


def read_list(line: str) -> list:
    """`dog-dogs cat-cats` -> pairs, other words as they are."""
    return [tuple(word.split("-")) if "-" in word else word for word in line.split()]


@cache
def classes() -> dict[str, str]:
    """What each word stands for; a word may be wrong in a story and yet of the right class."""
    known = words()
    members = {
        "name": known.names,
        "surname": known.surnames,
        "colour": known.colours,
        "thing": known.things,
        "verb": [form for pair in known.doings for form in pair] + ["is", "are"],
        "see": ["sees", "see"],
        "pronoun": ["She", "He"],
        "low pronoun": ["she", "he"],
        "Possessive": ["Her", "His"],
        "possessive": ["her", "his"],
        "animal": [form for pair in known.animals for form in pair],
        "child": ["girl", "boy"],
    }
    return {word: kind for kind, group in members.items() for word in group}
