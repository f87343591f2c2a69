"""How likely each word of a list is, where a story has a choice.

-> {word: weight}
"""

from functools import cache

from minigpt.stories.words import words
from minigpt.stories.world import Weights


def likely(weights: Weights) -> Weights:
    return {word: weight for word, weight in weights.items() if weight}


@cache
def even(group: str, total: float = 10.0) -> Weights:
    """All words of a list, equally likely; together they weigh `total`."""
    members = getattr(words(), group)
    return dict.fromkeys(members, total / len(members))


@cache
def new_names(first: str, same_gender: float) -> Weights:
    girls, boys = words().girls, words().boys
    if not first:
        return dict.fromkeys(girls + boys, 1.0)
    same, other = (girls, boys) if first in girls else (boys, girls)
    weights = dict.fromkeys(same, same_gender) | dict.fromkeys(other, 1 - same_gender)
    weights.pop(first)
    return likely(weights)


@cache
def partners(group: str, word: str, held_out: bool | None) -> Weights:
    """Surnames for a name, things for a colour: those that training binds to it, or never."""
    members = getattr(words(), group)
    return {one: 1.0 for one in members if held_out in (None, is_held_out(word, one))}


def is_held_out(first: str, second: str) -> bool:
    """Whether training never binds this pair: every tenth, by their places in the lists."""
    return (place_of(first) + place_of(second)) % 10 == 3


@cache
def place_of(word: str) -> int:
    known = words()
    groups = (known.girls, known.boys, known.surnames, known.colours, known.things)
    return next(group.index(word) for group in groups if word in group)


@cache
def song_words(already: int) -> Weights:
    """What a line of a song goes on with; from the third word on, it may end."""
    weights = dict.fromkeys(words().lexicon, 1.0)
    if already >= 2:
        weights[","] = 0.6 * len(weights)
    return weights


@cache
def animals(total: float, many: bool | None = None, mismatch: float = 0.5) -> Weights:
    """Animals in both numbers; beside `many` ones, the other number has the share `mismatch`."""
    weights = {}
    for pair in words().animals:
        for number, word in enumerate(pair):
            share = 0.5 if many is None else mismatch if number != many else 1 - mismatch
            if share:
                weights[word] = total * share / len(words().animals)
    return weights


@cache
def doings(many: bool) -> Weights:
    return {pair[many]: 1 for pair in words().doings}


@cache
def is_many(word: str) -> bool:
    return any(word == many for _, many in words().animals)
