"""The sentences that follow the opening, each by the word it begins with.

a teller, a world -> a sentence more, or the end of the story
"""

from minigpt.stories.binding import (
    choose_colour,
    choose_name,
    choose_thing,
    heard_name,
    heard_noun,
    noun_weights,
    relate_people,
    say_meant_name,
    say_name,
    say_surname,
)
from minigpt.stories.chances import even
from minigpt.stories.deeds import does, song
from minigpt.stories.subjects import near, the
from minigpt.stories.world import (
    CLOSE,
    END,
    OPEN,
    POSSESSIVES,
    PRONOUNS,
    Person,
    Teller,
    Weights,
    World,
)


def sentence(t: Teller, world: World, ending: float) -> bool:
    """Says a sentence about the world, or ends the story; whether there was a sentence."""
    word = t.choose("pattern", starts(world, ending))
    heard, world.said = world.said, None
    if word == END:
        return False
    if word in PRONOUNS.values():
        does(t, world, meant_by(t, world, word, PRONOUNS))
    elif word in POSSESSIVES.values():
        hers(t, world, meant_by(t, world, word, POSSESSIVES))
    elif heard and word == "A":
        parrot(t, heard)
    else:
        STARTS[word](t, world)
    if word == "Good":
        t.say(END)
    return word != "Good"


def starts(world: World, ending: float) -> Weights:
    """How a sentence may begin; the story ends with a chance of `ending`."""
    weights = {"The": 5.0, "Then": 1.0, "When": 0.6, "Near": 3.5, "Everyone": 0.8}
    weights |= {"Look": 0.6, "What": 0.3, "Soon": 0.3}
    weights["Is"] = sum(noun_weights(world, world.things).values())
    weights["Little"] = 0.8 * len(world.people)
    weights |= dict.fromkeys(world.meant(PRONOUNS), 1.4)
    weights |= dict.fromkeys(world.meant(POSSESSIVES), 1.2)
    weights |= {"They": 1.0} if len(world.people) == 2 else {"Someone": 0.3}
    if world.said:
        weights["A"] = 5.0
    if ending:
        total = sum(weights.values())
        weights[END] = 0.6 * total * ending / (1 - ending)
        weights["Good"] = 0.4 * total * ending / (1 - ending)
    return weights


def who_is_who(world: World) -> Weights:
    """How a sentence may begin that only tells who someone is."""
    pronouns = [*world.meant(PRONOUNS), *world.meant(POSSESSIVES)]
    return dict.fromkeys(pronouns, world.mix.who / 4) | {"Everyone": world.mix.who / 8}


def present(t: Teller, world: World, word: str) -> None:
    """She says, "I am Lily." Her name is Lily. Everyone knows Lily Reed."""
    if word == "Everyone":
        everyone(t, world)
        return
    possessive = word in POSSESSIVES.values()
    person = meant_by(t, world, word, POSSESSIVES if possessive else PRONOUNS)
    t.say("name is" if possessive else f"says , {OPEN} I am")
    say_meant_name(t, world, person)
    t.say("." if possessive else f". {CLOSE}")
    world.subject = person


def meant_by(t: Teller, world: World, word: str, words: dict[str, str]) -> Person:
    """Whom the pronoun said last means."""
    person = world.meant(words)[word]
    name = "pronoun → referent" if words is PRONOUNS else "possessive → owner"
    relate_people(t, world, name, person)
    return person


# ------------------------------------------------------------------------------ other beginnings


def hers(t: Teller, world: World, person: Person) -> None:
    """Her name is Lily. Her ball is red. Her friend is Tom."""
    friend = world.other(person)
    options = noun_weights(world, person.things) | {"name": 1.0}
    word = t.choose("owned", options | ({"friend": 0.5} if friend else {}))
    fitting = heard_noun(t, person.things, word)
    t.say("is")
    if word == "name":
        say_meant_name(t, world, person)
    elif friend and word == "friend":
        say_name(t, friend, "name by pronoun")
    else:
        choose_colour(t, world, fitting)
    t.say(".")
    world.subject = person


def little(t: Teller, world: World) -> None:
    """Little Lily …"""
    does(t, world, choose_name(t, world, "name"))


def then(t: Teller, world: World) -> None:
    """Then she …, Then Tom …"""
    does(t, world, somebody(t, world))


def when(t: Teller, world: World) -> None:
    """When it is cold, she …"""
    t.say("it is")
    t.choose("sky", even("skies"))
    t.say(",")
    does(t, world, somebody(t, world))


def somebody(t: Teller, world: World) -> Person:
    """A person by name or by pronoun, in the middle of a sentence."""
    pronouns = world.meant({child: word.lower() for child, word in PRONOUNS.items()})
    names = world.named
    word = t.choose("subject", dict.fromkeys(names, 1.0) | dict.fromkeys(pronouns, 1.2))
    if word in names:
        heard_name(t, names[word])
        return names[word]
    relate_people(t, world, "pronoun → referent", pronouns[word])
    return pronouns[word]


def is_it(t: Teller, world: World) -> None:
    """Is the ball red? Yes!"""
    t.say("the")
    noun = t.choose("noun", noun_weights(world, world.things))
    choose_colour(t, world, heard_noun(t, world.things, noun))
    t.say("? Yes !")


def everyone(t: Teller, world: World) -> None:
    """Everyone knows Lily Reed."""
    t.say("knows")
    person = choose_name(t, world, "name")
    say_surname(t, world, person)
    t.say(".")


def good_night(t: Teller, world: World) -> None:
    """Good night, Lily Reed!"""
    t.say("night ,")
    person = choose_name(t, world, "name")
    say_surname(t, world, person)
    t.say("!")


def look(t: Teller, world: World) -> None:
    """Look, the red ball is here!"""
    t.say(", the")
    choose_thing(t, world)
    t.say("is here !")


def they(t: Teller, world: World) -> None:
    """They play with the blue kite. They sing, …"""
    match t.choose("pattern", {"play": 1.2, "sing": 2.5, "eat": 0.5, "laugh": 0.3}):
        case "play":
            t.say("with the")
            choose_thing(t, world)
        case "sing":
            song(t)
            return
        case "eat":
            t.choose("food", even("foods"))
    t.say(".")


def parrot(t: Teller, heard: str) -> None:
    """A parrot says, "I am Lily." """
    t.say(f"parrot says , {OPEN}")
    t.say(heard, "echo")
    t.say(f". {CLOSE}")


def what(t: Teller, world: World) -> None:  # noqa: ARG001
    """What a lovely morning!"""
    t.say("a")
    t.choose("feature", even("features"))
    t.choose("time", even("times"))
    t.say("!")


def soon(t: Teller, world: World) -> None:  # noqa: ARG001
    """Soon it will be evening."""
    t.say("it will be")
    t.choose("time", even("times"))
    t.say(".")


def someone(t: Teller, world: World) -> None:  # noqa: ARG001
    """Someone brings honey."""
    t.say("brings")
    t.choose("food", even("foods"))
    t.say(".")


STARTS = {
    "The": the,
    "Little": little,
    "Then": then,
    "When": when,
    "Near": near,
    "Is": is_it,
    "Everyone": everyone,
    "Good": good_night,
    "Look": look,
    "They": they,
    "What": what,
    "Soon": soon,
    "Someone": someone,
}
