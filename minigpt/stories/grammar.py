"""How a story goes: one grammar, for those who tell a story and for those who read one.

Every random decision is a choice among different next words, made when that word is said, and
every other word is forced. So what happened can be read from the words alone, and the chance of
each word given those before it is exact: it is the one that stands here.

a teller, who says words -> a story
"""

from minigpt.stories.binding import say_name
from minigpt.stories.chances import even, likely, new_names, partners
from minigpt.stories.sentences import present, sentence, who_is_who
from minigpt.stories.words import words
from minigpt.stories.world import POSSESSIVES, Mix, Person, Teller, Thing, Weights, World


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
    given, paints = world.mix.given, world.mix.paints
    begin = likely({"Little": 1 - given, "The": given})
    word = t.choose("pattern", begin | who_is_who(world))
    if word not in begin:
        present(t, world, word)
        word = t.choose("pattern", begin)
    if word == "The":
        add_given(t, world, person)
    else:
        say_name(t, person, "pattern")
        has = 1 - given - paints
        verb = t.choose("pattern", likely({"has": has, "paints": paints}))
        add = {"has": add_had, "paints": add_painted}[verb]
        add(t, world, person)
        if len(world.people) == 1:
            t.say("and")
            add(t, world, person)
    t.say(".")
    world.subject = person


def add_given(t: Teller, world: World, owner: Person) -> None:
    """The red ball belongs to Lily."""
    add_coloured(t, world, owner, "belongs")
    t.say("belongs to")
    say_name(t, owner, "owner")


def add_had(t: Teller, world: World, owner: Person) -> None:
    """… a red ball"""
    t.say("a")
    add_coloured(t, world, owner, "has")


def add_coloured(t: Teller, world: World, owner: Person, told: str) -> None:
    """… red ball; two things may share their noun or their colour, but not both."""
    colour = t.choose("new colour", bindable(world, "colours", "things"))
    noun = t.choose("new thing", unbound(world, "things", colour))
    here = t.position
    owner.things.append(Thing(noun, colour, owner, told, [here - 1], [here - 2]))


def add_painted(t: Teller, world: World, owner: Person) -> None:
    """… her ball red."""
    t.say(POSSESSIVES[owner.child].lower(), "possessive")
    noun = t.choose("new thing", bindable(world, "things", "colours"))
    colour = t.choose("new colour", unbound(world, "colours", noun))
    here = t.position
    owner.things.append(Thing(noun, colour, owner, "paints", [here - 2], [here - 1]))


def bindable(world: World, group: str, others: str) -> Weights:
    """The colours for which there is a thing left, or the things for which there is a colour."""
    known = {word for thing in world.things for word in (thing.noun, thing.colour)}
    used_up = {word for word in known if not unbound(world, others, word)}
    return {word: weight for word, weight in even(group).items() if word not in used_up}


def unbound(world: World, group: str, word: str) -> Weights:
    """Things for a colour, or colours for a thing, but those of the story that are so already."""
    bound = {pair for thing in world.things for pair in thing.pairs}
    fitting = partners(group, word, world.mix.held_out)
    return {other: weight for other, weight in fitting.items() if (word, other) not in bound}
