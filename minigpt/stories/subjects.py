"""Sentences about a thing, a child, the sky or animals: those that begin with "The" or "Near".

a teller, a world -> a sentence
"""

from minigpt.stories.binding import (
    choose_colour,
    choose_noun,
    choose_owner,
    heard_name,
    heard_noun,
    relate_people,
    say_name,
    ways_to_name,
)
from minigpt.stories.chances import animals, doings, even, is_many
from minigpt.stories.deeds import does
from minigpt.stories.world import Teller, Thing, World


def the(t: Teller, world: World) -> None:
    """The red ball …, The ball …, The girl Lily …, The dogs near the cat …, The sky …"""
    colours = [thing.colour for thing in world.things]
    nouns = [thing.noun for thing in world.things]
    children = world.meant({"girl": "girl", "boy": "boy"})
    weights = ways_to_name(world, 2.0) | dict.fromkeys(children, 0.7) | animals(2.6) | {"sky": 0.3}
    word = t.choose("subject", weights)
    if word in colours:
        choose_noun(t, world, word)
        condition(t)
    elif word in nouns:
        about_things(t, world, heard_noun(t, world.things, word))
    elif word in children:
        relate_people(t, world, "child → name", children[word])
        say_name(t, children[word], "name by child")
        does(t, world, children[word])
    elif word == "sky":
        t.say("is")
        t.choose("sky", even("skies"))
        t.say(".")
    else:
        beside(t, world, word)


def condition(t: Teller) -> None:
    """… is small. … is near the park."""
    t.say("is")
    if t.choose("pattern", even("features") | {"near": 6}) == "near":
        t.say("the")
        t.choose("place", even("places"))
    t.say(".")


def about_things(t: Teller, world: World, fitting: list[Thing]) -> None:
    """… is red. … belongs to Lily. … Lily has is red."""
    owners = {thing.owner.name: thing.owner for thing in fitting}
    word = t.choose("pattern", {"is": 2, "belongs": 1.2} | dict.fromkeys(owners, 1.2 / len(owners)))
    if word == "belongs":
        t.say("to")
        choose_owner(t, world, fitting)
    else:
        if word in owners:
            heard_name(t, owners[word])
            fitting = [thing for thing in fitting if thing.owner.name == word]
            t.say("has is")
        choose_colour(t, world, fitting)
    t.say(".")


def beside(t: Teller, world: World, word: str) -> None:
    """The dogs near the cat run. The cat who sees the dogs sleeps."""
    subject = t.position - 1
    many = is_many(word)
    link = t.choose("pattern", {"near": 2, "who": 1, "behind": 1})
    if link == "who":
        t.say("see" if many else "sees", "agreement")
        t.relate("verb → subject", [subject])
    t.say("the")
    t.choose("attractor", animals(1.0, many, world.mix.mismatch))
    acts(t, many, subject, t.position - 1)


def near(t: Teller, world: World) -> None:
    """Near the cats, the dog sleeps."""
    t.say("the")
    neighbour = t.choose("attractor", animals(1.0))
    place = t.position - 1
    t.say(", the")
    mismatch = world.mix.mismatch
    word = t.choose("subject", animals(1.0, is_many(neighbour), mismatch))
    acts(t, is_many(word), t.position - 1, place)


def acts(t: Teller, many: bool, subject: int, other: int) -> None:
    """… run. … is happy. The number is fixed by a subject elsewhere."""
    be = "are" if many else "is"
    t.relate("agreement", [subject], [other])
    word = t.choose("agreement", doings(many) | {be: 0.3 * len(doings(many))})
    t.relate("verb → subject", [subject], [other])
    if word == be:
        t.choose("feeling", even("feelings"))
    t.say(".")
