"""Words that something said before has fixed: names, surnames, colours, things.

Each function says its word and notes which earlier words it depends on.
"""

from minigpt.stories.world import Person, Teller, Thing, World


def say_name(t: Teller, person: Person, slot: str) -> None:
    note_name(t, person, 0)
    t.say(person.name, slot)


def note_name(t: Teller, person: Person, shift: int) -> None:
    """The name is said at the next position, or was at the one before (`shift` −1)."""
    t.relate("repeated name", -shift, person.names[:], [])
    person.names.append(t.position + shift)


def note_repeat(t: Teller, places: list[int]) -> None:
    places.append(t.position - 1)


def say_surname(t: Teller, world: World, person: Person) -> None:
    other = world.other(person)
    t.relate("surname", 1, person.surnames[:], other.surnames[:] if other else [])
    t.say(person.surname, "surname")
    person.surnames.append(t.position - 1)


def say_thing(t: Teller, world: World) -> None:
    """red ball: a thing by the colour that it was given."""
    colour = t.choose("colour", {thing.colour: 1 for thing in world.things})
    thing = next((one for one in world.things if one.colour == colour), world.things[0])
    say_noun_of(t, world, thing)


def say_noun_of(t: Teller, world: World, thing: Thing) -> None:
    thing.colours.append(t.position - 1)
    others = [place for one in world.things if one is not thing for place in one.nouns]
    t.relate("object recall", 1, thing.nouns[:], others)
    t.relate("adjective → noun", 0, [t.position - 1], [])
    t.say(thing.noun, "object")
    thing.nouns.append(t.position - 1)


def say_colour_of(t: Teller, world: World, thing: Thing) -> None:
    others = [place for one in world.things if one is not thing for place in one.colours]
    t.relate("colour recall", 1, thing.colours[:], others)
    t.say(thing.colour, "colour recall")
    thing.colours.append(t.position - 1)


def pronoun(t: Teller, world: World, word: str) -> Person:
    """Whom a pronoun just said means."""
    person = world.only("girl" if word == "She" else "boy") or world.people[0]
    relate_people(t, world, "pronoun → referent", 1, person)
    return person


def relate_people(t: Teller, world: World, name: str, shift: int, person: Person) -> None:
    other = world.other(person)
    t.relate(name, shift, person.names[:], other.names[:] if other else [])


def by_name(world: World, word: str) -> Person | None:
    return next((person for person in world.people if person.name == word), None)


def known_by_name(world: World, word: str) -> Person:
    return by_name(world, word) or world.people[0]
