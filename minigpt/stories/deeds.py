"""What people do, from the verb to the end of the sentence.

a teller, a world, a person who was just mentioned -> the rest of a sentence
"""

from minigpt.stories.binding import (
    choose_colour,
    choose_owned,
    choose_thing,
    noun_weights,
    relate_people,
    say_meant_name,
)
from minigpt.stories.chances import even, song_words
from minigpt.stories.world import CLOSE, OPEN, POSSESSIVES, Person, Teller, World

VERBS_OF_TAKING = ("likes", "wants", "hugs", "finds", "shows", "cleans")


def does(t: Teller, world: World, person: Person) -> None:
    weights = {"goes": 0.6, "feels": 0.7, "says": 2.0, "sings": 2.6, "sees": 0.7, "eats": 0.4}
    verb = t.choose("pattern", weights | dict.fromkeys(VERBS_OF_TAKING, 0.45))
    world.subject = person
    if verb in VERBS_OF_TAKING:
        takes(t, world, person)
    else:
        DEEDS[verb](t, world, person)


def takes(t: Teller, world: World, person: Person) -> None:
    """… likes the red ball. … likes his ball."""
    owners = world.meant({child: word.lower() for child, word in POSSESSIVES.items()})
    own = {word: own_weight(world, owner) for word, owner in owners.items()}
    word = t.choose("pattern", {"the": 1.2} | own)
    if word == "the":
        choose_thing(t, world)
    else:
        relate_people(t, world, "possessive → owner", owners[word])
        choose_owned(t, world, owners[word])
    t.say(".")


def own_weight(world: World, owner: Person) -> float:
    """How readily a person's things are named by a possessive."""
    return max(noun_weights(world, owner.things).values())


def goes(t: Teller, world: World, person: Person) -> None:  # noqa: ARG001
    """… goes to the park."""
    t.say("to the")
    t.choose("place", even("places"))
    t.say(".")


def feels(t: Teller, world: World, person: Person) -> None:  # noqa: ARG001
    """… feels happy today. … feels happy because the red ball is new."""
    t.choose("feeling", even("feelings"))
    if t.choose("pattern", {"because": 1, "today": 1}) == "because":
        t.say("the")
        choose_thing(t, world)
        t.say("is")
        t.choose("feature", even("features"))
    t.say(".")


def sees(t: Teller, world: World, person: Person) -> None:  # noqa: ARG001
    """… sees a dragon."""
    t.say("a")
    t.choose("sight", even("sights"))
    t.say(".")


def eats(t: Teller, world: World, person: Person) -> None:  # noqa: ARG001
    """… eats honey."""
    t.choose("food", even("foods"))
    t.say(".")


def says(t: Teller, world: World, person: Person) -> None:
    """… says, "I am Lily." "My ball is red." "Hello again." """
    t.say(f", {OPEN}")
    match t.choose("pattern", {"I": 2.0, "My": 1.6 * own_weight(world, person), "Hello": 0.2}):
        case "I":
            t.say("am")
            say_meant_name(t, world, person)
            world.said = f"I am {person.name}"
        case "My":
            my(t, world, person)
        case _:
            t.say("again")
    t.say(f". {CLOSE}")


def my(t: Teller, world: World, person: Person) -> None:
    fitting = choose_owned(t, world, person)
    t.say("is")
    colour = choose_colour(t, world, fitting)
    world.said = f"My {fitting[0].noun} is {colour}"


def sings(t: Teller, world: World, person: Person) -> None:  # noqa: ARG001
    song(t)


def song(t: Teller) -> None:
    """… sings, "Oh, ball Lily red, ball Lily red, ball Lily red!" """
    t.say(f", {OPEN} Oh ,")
    line: list[str] = []
    start = t.position
    while len(line) < 5:
        word = t.choose("new song", song_words(len(line)))
        if word == ",":
            break
        line.append(word)
    else:
        t.say(",")
    for more in (1.5, 0.8, 0.2):
        repeat(t, line, start)
        if t.choose("pattern", {",": more, "!": 1}) == "!":
            break
    else:
        repeat(t, line, start)
        t.say("!")
    t.say(CLOSE)


def repeat(t: Teller, line: list[str], start: int) -> None:
    """Sings a line again that was first sung at `start`."""
    for index, word in enumerate(line):
        sung = range(start, t.position)
        gold = [place for place in sung if (place - start) % (len(line) + 1) == index]
        commas = [place for place in sung if (place - start) % (len(line) + 1) == len(line)]
        t.relate("refrain", gold, [p for p in sung if p not in gold and p not in commas])
        t.say(word, "refrain")


DEEDS = {
    "goes": goes,
    "feels": feels,
    "says": says,
    "sings": sings,
    "sees": sees,
    "eats": eats,
}
