"""What people do: the part of a sentence that follows its subject."""

from minigpt.stories.binding import (
    note_name,
    note_repeat,
    relate_people,
    say_colour_of,
    say_name,
    say_surname,
    say_thing,
)
from minigpt.stories.chances import even, song_words
from minigpt.stories.world import CLOSE, HER, OPEN, Person, Teller, World

VERBS_OF_TAKING = ("likes", "wants", "hugs", "finds", "shows", "cleans")


def does(t: Teller, world: World, person: Person) -> None:
    """What a person does, to the end of the sentence."""
    weights = {"goes": 0.7, "feels": 0.8, "says": 2.0, "sings": 1.8, "sees": 0.8, "eats": 0.4}
    weights |= dict.fromkeys(VERBS_OF_TAKING, 0.45)
    verb = t.choose("pattern", weights)
    t.relate("verb → subject", 1, person.names[-1:], [])
    if verb in VERBS_OF_TAKING:
        takes(t, world, person)
    else:
        DEEDS[verb](t, world, person)
    t.say(".") if verb != "says" else None
    world.subject = person


def takes(t: Teller, world: World, person: Person) -> None:
    """… likes the red ball, … likes his ball."""
    owners = {HER[child].lower(): world.only(child) for child in ("girl", "boy")}
    owners = {word: owner for word, owner in owners.items() if owner}
    if HER[person.child].lower() in owners:
        owners[HER[person.child].lower()] = person
    word = t.choose("pattern", {"the": 1.6} | dict.fromkeys(owners, 0.7))
    if word == "the":
        say_thing(t, world)
        return
    owner = owners.get(word) or person
    relate_people(t, world, "possessive → owner", 1, owner)
    thing = owner.things[0]
    if len(owner.things) > 1:
        noun = t.choose("owned", {one.noun: 1 for one in owner.things})
        thing = next((one for one in owner.things if one.noun == noun), thing)
        note_repeat(t, thing.nouns)
    else:
        others = [place for one in world.things if one is not thing for place in one.nouns]
        t.relate("owned thing", 1, thing.nouns, others)
        t.say(thing.noun, "owned")
        thing.nouns.append(t.position - 1)


def goes(t: Teller, world: World, person: Person) -> None:
    t.say("to the")
    t.choose("place", even("places"))


def feels(t: Teller, world: World, person: Person) -> None:
    """… feels happy because the red ball is new."""
    t.choose("feeling", even("feelings"))
    if t.choose("pattern", {"because": 1, "today": 1}) == "because":
        t.say("the")
        say_thing(t, world)
        t.say("is")
        t.choose("feature", even("features"))


def sees(t: Teller, world: World, person: Person) -> None:
    """… sees Tom, … sees a dragon."""
    other = world.other(person)
    if t.choose("pattern", {"a": 1} | ({other.name: 1.5} if other else {})) == "a":
        t.choose("sight", even("sights"))
    elif other:
        note_name(t, other, -1)


def eats(t: Teller, world: World, person: Person) -> None:
    t.choose("food", even("foods"))


def says(t: Teller, world: World, person: Person) -> None:
    """… says, "I am Lily Reed." "My ball is red." "The red ball is mine." """
    t.say(f", {OPEN}")
    match t.choose("pattern", {"I": 1.5, "My": 0.6, "Hello": 0.4}):
        case "I":
            t.say("am")
            relate_people(t, world, "pronoun → name", 1, person)
            say_name(t, person, "name by pronoun")
            say_surname(t, world, person)
        case "My":
            noun = t.choose("owned", {thing.noun: 1 for thing in person.things})
            thing = next((one for one in person.things if one.noun == noun), person.things[0])
            note_repeat(t, thing.nouns)
            t.say("is")
            say_colour_of(t, world, thing)
        case _:
            other = world.other(person)
            if other:
                t.say(",")
                say_name(t, other, "name")
            else:
                t.say("again")
    t.say(f". {CLOSE}")


def sings(t: Teller, world: World, person: Person) -> None:
    song(t)


DEEDS = {
    "goes": goes,
    "feels": feels,
    "sees": sees,
    "eats": eats,
    "says": says,
    "sings": sings,
}


def song(t: Teller) -> None:
    """…, ball Lily red, ball Lily red, ball Lily red"""
    t.say(",")
    line: list[str] = []
    first = t.position
    while len(line) < 5:
        word = t.choose("new song", song_words(line))
        if word == ",":
            break
        line.append(word)
    else:
        t.say(",")
    again = True
    while again:
        for index, word in enumerate(line):
            t.relate("refrain", 1, [first + index], [])
            t.say(word, "refrain")
        first += len(line) + 1
        again = t.choose("pattern", {",": 1.5, "and": 1}) == ","
    t.say("so on")
