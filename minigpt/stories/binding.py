"""Words that something said before decides: whose name, which colour, whose thing.

Each function says such a word, and notes at which earlier words it can be looked up.
"""

from minigpt.stories.chances import likely
from minigpt.stories.world import Person, Teller, Thing, Weights, World

# ------------------------------------------------------------------------------ people


def heard_name(t: Teller, person: Person) -> None:
    """The word said last is a person's name, again."""
    t.relate("repeated name", person.names)
    person.names.append(t.position - 1)


def choose_name(t: Teller, world: World, slot: str) -> Person:
    person = world.named[t.choose(slot, dict.fromkeys(world.named, 1.0))]
    heard_name(t, person)
    return person


def say_name(t: Teller, person: Person, slot: str) -> None:
    t.say(person.name, slot)
    heard_name(t, person)


def say_surname(t: Teller, world: World, person: Person) -> None:
    other = world.other(person)
    t.relate("surname", person.surnames, other.surnames if other else [])
    t.say(person.surname, "surname")
    person.surnames.append(t.position - 1)


def say_meant_name(t: Teller, world: World, person: Person) -> None:
    """… Lily, where a pronoun decides who."""
    relate_people(t, world, "pronoun → name", person)
    say_name(t, person, "name by pronoun")


def relate_people(t: Teller, world: World, name: str, person: Person) -> None:
    """Who `person` is decides what the word said last means, or which one comes next."""
    other = world.other(person)
    t.relate(name, person.names, other.names if other else [])


# ------------------------------------------------------------------------------ things


def ways_to_name(world: World, total: float = 1.0) -> Weights:
    """A thing by its colour if that was said before the noun, by its noun if that was said before
    colour or owner; seldom otherwise."""
    weights: Weights = {}
    for thing in world.things:
        by_noun = thing.painted or thing.given
        for word, easy in ((thing.colour, not thing.painted), (thing.noun, by_noun)):
            weights[word] = weights.get(word, 0.0) + total * (1.0 if easy else world.mix.against)
    return likely(weights)


def noun_weights(world: World, things: list[Thing]) -> Weights:
    """Nouns that a colour will be asked of."""
    return {thing.noun: 1.0 if thing.painted else world.mix.against for thing in things}


def choose_thing(t: Teller, world: World) -> None:
    """… red ball. … ball."""
    word = t.choose("thing", ways_to_name(world))
    if not heard_noun(t, world.things, word):
        choose_noun(t, world, word)


def choose_noun(t: Teller, world: World, colour: str) -> Thing:
    """… ball, after its colour; a choice if there are two things of that colour."""
    fitting = [thing for thing in world.things if thing.colour == colour]
    for thing in fitting:
        thing.colours.append(t.position - 1)
    if len(fitting) == 1:
        t.relate("object recall", fitting[0].nouns, places("nouns", world, fitting))
    noun = t.choose("object", dict.fromkeys((one.noun for one in fitting), 1.0))
    t.relate("adjective → noun", [t.position - 2])
    return heard_noun(t, fitting, noun)[0]


def choose_owned(t: Teller, world: World, owner: Person) -> list[Thing]:
    """… ball, after a possessive. -> what that may be"""
    if len(owner.things) == 1:
        t.relate("owned thing", owner.things[0].nouns, places("nouns", world, owner.things))
    options = dict.fromkeys((thing.noun for thing in owner.things), 1.0)
    return heard_noun(t, owner.things, t.choose("owned", options))


def heard_noun(t: Teller, things: list[Thing], noun: str) -> list[Thing]:
    """The word said last names those of the things that fit it."""
    fitting = [thing for thing in things if thing.noun == noun]
    for thing in fitting:
        thing.nouns.append(t.position - 1)
    return fitting


def choose_colour(t: Teller, world: World, fitting: list[Thing]) -> str:
    """… red, after words that one thing fits, or two."""
    if len(fitting) == 1:
        t.relate("colour recall", fitting[0].colours, places("colours", world, fitting))
    colour = t.choose("colour recall", dict.fromkeys((one.colour for one in fitting), 1.0))
    for thing in fitting:
        if thing.colour == colour:
            thing.colours.append(t.position - 1)
    return colour


def choose_owner(t: Teller, world: World, fitting: list[Thing]) -> None:
    """… Lily, after "belongs to"."""
    owners = {thing.owner.name: thing.owner for thing in fitting}
    if len(owners) == 1:
        relate_people(t, world, "owner recall", fitting[0].owner)
    heard_name(t, owners[t.choose("owner", dict.fromkeys(owners, 1.0))])


def places(kind: str, world: World, but: list[Thing]) -> list[int]:
    """Where the nouns or colours of all other things were said."""
    return [place for thing in world.things if thing not in but for place in getattr(thing, kind)]
