"""Sentences about a thing, the sky or animals: those that begin with "The" or "Near".

a teller, a world -> a sentence
"""

from minigpt.stories.binding import (
    choose_colour,
    choose_noun,
    choose_owner,
    heard_noun,
    noun_weights,
    ways_to_name,
)
from minigpt.stories.chances import animals, doings, even, is_many, likely
from minigpt.stories.words import words
from minigpt.stories.world import Teller, Thing, World


def the(t: Teller, world: World) -> None:
    """The red ball …, The ball …, The dogs near the cat …, The sky …"""
    colours = [thing.colour for thing in world.things]
    nouns = [thing.noun for thing in world.things]
    weights = ways_to_name(world, 2.0) | animals(2.5) | {"sky": 0.3}
    word = t.choose("subject", weights)
    if word in colours:
        condition(t, world, choose_noun(t, world, word))
    elif word in nouns:
        about_things(t, world, heard_noun(t, world.things, word))
    elif word == "sky":
        t.say("is")
        t.choose("sky", even("skies"))
        t.say(".")
    else:
        beside(t, world, word)


def condition(t: Teller, world: World, thing: Thing) -> None:
    """… is small. … is near the park. … belongs to Lily."""
    belongs = 1.0 if thing.given else world.mix.against
    if t.choose("pattern", likely({"is": 1.0, "belongs": belongs})) == "belongs":
        belongs_to(t, world, [thing])
        return
    if t.choose("pattern", even("features") | {"near": 6}) == "near":
        t.say("the")
        t.choose("place", even("places"))
    t.say(".")


def about_things(t: Teller, world: World, fitting: list[Thing]) -> None:
    """… is red. … belongs to Lily."""
    recalled = max(noun_weights(world, fitting).values())
    given = 1.0 if any(thing.given for thing in fitting) else world.mix.against
    if t.choose("pattern", likely({"is": recalled, "belongs": given})) == "belongs":
        belongs_to(t, world, fitting)
        return
    choose_colour(t, world, fitting)
    t.say(".")


def belongs_to(t: Teller, world: World, fitting: list[Thing]) -> None:
    t.say("to")
    choose_owner(t, world, fitting)
    t.say(".")


# ------------------------------------------------------------------------------ animals


def beside(t: Teller, world: World, word: str, others: tuple[int, ...] = ()) -> None:
    """The dogs near the old cat run. The cat who sees the dogs sleeps."""
    subject = t.position - 1
    many = is_many(word)
    link = t.choose("pattern", {"near": 2, "who": 2, "behind": 1})
    if link == "who":
        t.say("see" if many else "sees", "agreement")
    t.say("the")
    attractor = t.choose("attractor", animals(2.0, many, world.mix.mismatch) | even("ages", 1.0))
    if attractor in words().ages:
        t.choose("attractor", animals(1.0, many, world.mix.mismatch))
    acts(t, many, subject, (*others, t.position - 1))


def near(t: Teller, world: World) -> None:
    """Near the cats, the dog sleeps. Near the cats, the dog behind the geese sleeps."""
    t.say("the")
    neighbour = t.choose("attractor", animals(1.0))
    place = t.position - 1
    t.say(", the")
    word = t.choose("subject", animals(1.0, is_many(neighbour), world.mix.mismatch))
    beside(t, world, word, (place,))


def acts(t: Teller, many: bool, subject: int, others: tuple[int, ...]) -> None:
    """… run. … is happy. The number is fixed by a subject elsewhere."""
    be = "are" if many else "is"
    t.relate("agreement", [subject], others)
    word = t.choose("agreement", doings(many) | {be: 0.3 * len(doings(many))})
    t.relate("verb → subject", [subject], others)
    if word == be:
        t.choose("feeling", even("feelings"))
    t.say(".")
