"""How a story goes: one grammar, for those who tell a story and for those who read one.

Every random decision is a choice among different next words, made when that word is said, and
every other word is forced. So what happened can be read from the words alone, and the chance of
each word given those before it is exact: it is the one that stands here.

a teller, who says words -> a story
"""

from minigpt.stories.binding import say_name
from minigpt.stories.chances import even, likely, new_names, partners, without
from minigpt.stories.sentences import sentence
from minigpt.stories.words import words
from minigpt.stories.world import POSSESSIVES, Mix, Person, Teller, Thing, World


def tell(t: Teller, mix: Mix) -> None:
    """Tells one story, its last line break included."""
    world = World(mix)
    opening(t, world)
    for person in world.people:
        belongings(t, world, person)
    number = 0
    while sentence(t, world, mix.endings[min(number, len(mix.endings) - 1)]):
        number += 1


# ------------------------------------------------------------------------------ who it is about

WHERE = {"went": "to the", "lived": "near the"}


def opening(t: Teller, world: World) -> None:
    """One person or two, by name and surname."""
    match t.choose("opening", {"One": 3, "Once": 2, "There": 1, "This": 2}):
        case "One":
            t.say("day")
            introduce(t, world)
            go_on(t, world, "went", "met")
        case "Once":
            t.say("there was a")
            introduce_child(t, world, "called")
            t.say("who")
            go_on(t, world, "lived", "knew")
        case "There":
            t.say("lived a")
            introduce_child(t, world, "named")
            t.say("who")
            go_on(t, world, "lived", "knew")
        case _:
            t.say("is the story of")
            introduce(t, world)
            go_on(t, world, ".", "and")


def go_on(t: Teller, world: World, alone: str, together: str) -> None:
    """… went to the park. … met Tom Hill."""
    world.subject = first = world.people[0]
    two = world.mix.two_people
    if t.choose("pattern", likely({alone: 1 - two, together: two})) == together:
        introduce(t, world, first)
    elif alone == ".":
        return
    else:
        t.say(WHERE[alone])
        t.choose("place", even("places"))
    t.say(".")


def introduce(t: Teller, world: World, first: Person | None = None) -> None:
    """A new person by name and surname."""
    names = new_names(first.name if first else "", world.mix.same_gender)
    add_person(t, world, t.choose("new name", names))


def introduce_child(t: Teller, world: World, called: str) -> None:
    child = t.choose("child", {"girl": 1, "boy": 1})
    t.say(called)
    add_person(t, world, t.choose("new name", even("girls" if child == "girl" else "boys")))


def add_person(t: Teller, world: World, name: str) -> None:
    surname = t.choose("new surname", partners("surnames", name, world.mix.held_out))
    child = "girl" if name in words().girls else "boy"
    here = t.position
    world.people.append(Person(name, surname, child, [here - 2], [here - 1]))


# ------------------------------------------------------------------------------ what they have


def belongings(t: Teller, world: World, person: Person) -> None:
    """What a person has: one thing, or two when nobody else is there."""
    say_name(t, person, "pattern")
    paints = world.mix.paints
    add = {"has": add_had, "paints": add_painted}[
        t.choose("pattern", likely({"has": 1 - paints, "paints": paints}))
    ]
    add(t, world, person)
    if len(world.people) == 1:
        t.say("and")
        add(t, world, person)
    t.say(".")
    world.subject = person


def add_had(t: Teller, world: World, owner: Person) -> None:
    """… a red ball; two things may share their noun or their colour, but not both."""
    t.say("a")
    colour = t.choose("new colour", even("colours"))
    taken = [thing.noun for thing in world.things if thing.colour == colour]
    nouns = partners("things", colour, world.mix.held_out)
    noun = t.choose("new thing", without(nouns, taken))
    here = t.position
    owner.things.append(Thing(noun, colour, owner, False, [here - 1], [here - 2]))


def add_painted(t: Teller, world: World, owner: Person) -> None:
    """… her ball red."""
    t.say(POSSESSIVES[owner.child].lower(), "possessive")
    own = [thing.noun for thing in owner.things]
    noun = t.choose("new thing", without(even("things"), own))
    taken = [thing.colour for thing in world.things if thing.noun == noun]
    colours = partners("colours", noun, world.mix.held_out)
    colour = t.choose("new colour", without(colours, taken))
    here = t.position
    owner.things.append(Thing(noun, colour, owner, True, [here - 2], [here - 1]))
