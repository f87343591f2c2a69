"""How a story goes: one grammar, for those who tell a story and for those who read one.

Every random decision is a choice among different next words, made when that word is said, and
every other word is forced. So what happened can be read from the words alone, and the chance of
each word given those before it is exact: it is the one that stands here.

a teller, who says words -> a story
"""

from minigpt.stories.binding import say_name
from minigpt.stories.chances import colours_but, even, likely, new_names, surnames_for, things_for
from minigpt.stories.sentences import sentence
from minigpt.stories.words import words
from minigpt.stories.world import Mix, Person, Teller, Thing, Weights, World


def tell(t: Teller, mix: Mix) -> None:
    """Tells one story, its last line break included."""
    world = World(mix)
    opening(t, world)
    for person in world.people:
        belongings(t, world, person)
    number = 0
    while sentence(t, world, mix.endings[min(number, len(mix.endings) - 1)]):
        number += 1


# ------------------------------------------------------------------------------ beginnings


def opening(t: Teller, world: World) -> None:
    """Who it is about."""
    match t.choose("opening", {"One": 3, "Once": 2, "There": 1}):
        case "One":
            t.say("day")
            first = introduce(t, world)
            how_it_began(t, world, first, {"went": 1, "met": 1})
        case "Once":
            t.say("there was a")
            how_it_began(t, world, introduce_child(t, world, "called"), {"who": 1})
        case _:
            t.say("lived a")
            how_it_began(t, world, introduce_child(t, world, "named"), {"who": 1})


def how_it_began(t: Teller, world: World, first: Person, start: Weights) -> None:
    two = world.mix.two_people
    word = t.choose("pattern", likely({"went": 1 - two, "met": two}) if "met" in start else start)
    if word == "who":
        word = t.choose("pattern", likely({"lived": 1 - two, "knew": two}))
    if word == "went":
        t.say("to the")
        t.choose("place", even("places"))
    elif word == "lived":
        t.say("near the")
        t.choose("place", even("places"))
    else:
        introduce(t, world, first)
    t.say(".")
    world.subject = first


def introduce(t: Teller, world: World, first: Person | None = None) -> Person:
    """A new person by name and surname."""
    name = t.choose("new name", new_names(first.name if first else "", world.mix.same_gender))
    return with_surname(t, world, name)


def introduce_child(t: Teller, world: World, called: str) -> Person:
    child = t.choose("child", {"girl": 1, "boy": 1})
    t.say(called)
    name = t.choose("new name", even("girls" if child == "girl" else "boys"))
    return with_surname(t, world, name)


def with_surname(t: Teller, world: World, name: str) -> Person:
    place = t.position - 1
    taken = world.people[0].surname if world.people else ""
    surname = t.choose("new surname", surnames_for(name, taken, world.mix.held_out))
    child = "girl" if name in words().girls else "boy"
    person = Person(name, surname, child, [place], [place + 1])
    world.people.append(person)
    return person


def belongings(t: Teller, world: World, person: Person) -> None:
    """What a person has: one thing, or two when nobody else is there."""
    say_name(t, person, "pattern")
    t.say("has a")
    new_thing(t, world, person)
    if len(world.people) == 1:
        t.say("and a")
        new_thing(t, world, person)
    t.say(".")
    world.subject = person


def new_thing(t: Teller, world: World, owner: Person) -> None:
    first = world.things[0] if world.things else None
    colour = t.choose("new colour", colours_but(first.colour if first else ""))
    taken = first.noun if first else ""
    noun = t.choose("new thing", things_for(colour, taken, world.mix.held_out))
    here = t.position
    owner.things.append(Thing(noun, colour, owner, [here - 1], [here - 2]))
