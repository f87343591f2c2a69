"""How likely each word is where a story may choose: weights, in proportion to the chances."""

from functools import cache

from minigpt.stories.words import words
from minigpt.stories.world import Weights


def likely(weights: Weights) -> Weights:
    return {word: weight for word, weight in weights.items() if weight}


@cache
def even(group: str) -> Weights:
    """All words of a list, equally likely; together they weigh 10."""
    members = getattr(words(), group)
    return dict.fromkeys(members, 10 / len(members))


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
def surnames_for(name: str, taken: str, held_out: bool | None) -> Weights:
    members = [s for s in words().surnames if held_out in (None, is_held_out(name, s))]
    return {surname: 1 for surname in members if surname != taken}


@cache
def things_for(colour: str, taken: str, held_out: bool | None) -> Weights:
    members = [n for n in words().things if held_out in (None, is_held_out(colour, n))]
    return {noun: 1 for noun in members if noun != taken}


@cache
def colours_but(taken: str) -> Weights:
    return {colour: 1 for colour in words().colours if colour != taken}


def is_held_out(first: str, second: str) -> bool:
    """Whether training never binds this pair: every sixth by the words' places in their lists."""
    return (place_of(first) + place_of(second)) % 6 == 0


@cache
def place_of(word: str) -> int:
    known = words()
    groups = (known.girls, known.boys, known.surnames, known.colours, known.things)
    return next(group.index(word) for group in groups if word in group)


def song_words(line: list[str]) -> Weights:
    """Words that the song has not had; from the third on, the line may end."""
    weights = dict.fromkeys((word for word in words().lexicon if word not in line), 1.0)
    if len(line) >= 2:
        weights[","] = 0.6 * len(weights)
    return weights


@cache
def animal_weights(total: float, many: bool | None = None, mismatch: float = 0.5) -> Weights:
    """Animals in both numbers; beside `many` ones, the other number has the share `mismatch`."""
    shares = [0.5, 0.5] if many is None else [mismatch if many else 1 - mismatch] * 2
    if many is not None:
        shares[1] = 1 - shares[0]
    each = total / len(words().animals)
    return likely({pair[i]: each * shares[i] for pair in words().animals for i in (0, 1)})


@cache
def is_many(word: str) -> bool:
    return any(word == many for _, many in words().animals)
