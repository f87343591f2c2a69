"""The sentences a story may go on with, one function each, by their first word."""

from minigpt.stories.binding import (
    by_name,
    known_by_name,
    note_name,
    note_repeat,
    pronoun,
    relate_people,
    say_colour_of,
    say_name,
    say_noun_of,
    say_surname,
    say_thing,
)
from minigpt.stories.chances import animal_weights, even, is_many, likely
from minigpt.stories.deeds import does, song
from minigpt.stories.words import words
from minigpt.stories.world import END, HER, SHE, Person, Teller, Thing, Weights, World


def sentence(t: Teller, world: World, ending: float) -> bool:
    """Says a sentence about the world, or ends the story; whether there was a sentence."""
    word = t.choose("pattern", sentence_starts(world, ending))
    if word == END:
        return False
    person = by_name(world, word)
    if person:
        note_name(t, person, -1)
        does(t, world, person)
    elif word in SHE.values():
        does(t, world, pronoun(t, world, word))
    elif word in HER.values():
        hers(t, world, word)
    else:
        STARTS[word](t, world)
    return True


def sentence_starts(world: World, ending: float) -> Weights:
    weights = {"The": 5.0, "Then": 1.0, "When": 0.6, "Near": 0.7, "What": 0.3, "Everyone": 1.2}
    weights |= {"Look": 0.6, "Soon": 0.3}
    for person in world.people:
        weights[person.name] = 0.8
    for child in ("girl", "boy"):
        if world.only(child):
            weights[SHE[child]] = 1.4
            weights[HER[child]] = 1.2
    if len(world.people) == 2:
        weights["They"] = 1.0
    else:
        weights["Someone"] = 0.3
    total = sum(weights.values())
    weights[END] = total * ending / (1 - ending)
    return likely(weights)


def the(t: Teller, world: World) -> None:
    """The red ball …, The ball …, The girl Lily …, The dogs near the cat …, The sky …"""
    colours = {thing.colour: thing for thing in world.things}
    nouns = {thing.noun: thing for thing in world.things}
    meant = {child: world.only(child) for child in ("girl", "boy")}
    children = {child: person for child, person in meant.items() if person}
    weights = dict.fromkeys(colours, 1.4) | dict.fromkeys(nouns, 0.6)
    weights |= dict.fromkeys(children, 0.7) | animal_weights(1.6) | {"sky": 0.3}
    word = t.choose("subject", weights)
    if word in colours:
        say_noun_of(t, world, colours[word])
        t.say("is")
        condition(t)
    elif word in nouns:
        note_repeat(t, nouns[word].nouns)
        about_thing(t, world, nouns[word])
    elif word in children:
        person = children[word]
        relate_people(t, world, "child → name", 1, person)
        say_name(t, person, "name by child")
        does(t, world, person)
    elif word == "sky":
        t.say("is")
        t.choose("sky", even("skies"))
    else:
        animals(t, world, word)
        return
    t.say(".") if word not in children else None


def about_thing(t: Teller, world: World, thing: Thing) -> None:
    """… is red, … belongs to Lily."""
    if t.choose("pattern", {"is": 2, "belongs": 1}) == "is":
        say_colour_of(t, world, thing)
        return
    t.say("to")
    relate_people(t, world, "owner recall", 1, thing.owner)
    say_name(t, thing.owner, "owner")


def condition(t: Teller) -> None:
    """… small, … in the park."""
    if t.choose("pattern", even("features") | {"in": 6}) == "in":
        t.say("the")
        t.choose("place", even("places"))


def animals(t: Teller, world: World, word: str) -> None:
    """The dogs near the cat run. The cat who sees the dogs sleeps."""
    here = t.position - 1
    many = is_many(word)
    link = t.choose("pattern", {"near": 2, "who": 1, "behind": 1})
    if link == "who":
        t.relate("verb → subject", 0, [here], [])
        t.say("see" if many else "sees", "agreement")
    t.say("the")
    t.choose("attractor", animal_weights(1.0, many, world.mix.mismatch))
    acts(t, many, here, [t.position - 1])
    t.say(".")


def acts(t: Teller, many: bool, subject: int, others: list[int]) -> None:
    """… run, … sings: a verb whose number is fixed by a subject elsewhere."""
    t.relate("agreement", 1, [subject], others)
    t.relate("verb → subject", 0, [subject], others)
    t.choose("agreement", {pair[many]: 1 for pair in words().doings})


def near(t: Teller, world: World) -> None:
    """Near the cats, the dog sleeps."""
    t.say("the")
    beside = t.choose("attractor", animal_weights(1.0))
    place = t.position - 1
    t.say(", the")
    word = t.choose("subject", animal_weights(1.0, is_many(beside), world.mix.mismatch))
    acts(t, is_many(word), t.position - 1, [place])
    t.say(".")


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
    weights = {person.name: 1.0 for person in world.people}
    weights |= {SHE[child].lower(): 1.2 for child in ("girl", "boy") if world.only(child)}
    word = t.choose("subject", weights)
    person = by_name(world, word)
    if person:
        note_name(t, person, -1)
        return person
    return pronoun(t, world, word.capitalize())


def what(t: Teller, world: World) -> None:
    """What a lovely morning!"""
    t.say("a")
    t.choose("feature", even("features"))
    t.choose("time", even("times"))
    t.say("!")


def soon(t: Teller, world: World) -> None:
    """Soon it will be evening."""
    t.say("it will be")
    t.choose("time", even("times"))
    t.say(".")


def someone(t: Teller, world: World) -> None:
    """Someone brings honey."""
    t.say("brings")
    t.choose("food", even("foods"))
    t.say(".")


def everyone(t: Teller, world: World) -> None:
    """Everyone knows Lily Reed."""
    t.say("knows")
    name = t.choose("name", {person.name: 1 for person in world.people})
    person = known_by_name(world, name)
    note_name(t, person, -1)
    say_surname(t, world, person)
    t.say(".")


def look(t: Teller, world: World) -> None:
    """Look, the red ball is here!"""
    t.say(", the")
    say_thing(t, world)
    t.say("is here !")


def they(t: Teller, world: World) -> None:
    """They play with the blue kite. They sing, …"""
    match t.choose("pattern", {"play": 1.2, "sing": 2.0, "eat": 0.4, "laugh": 0.3}):
        case "play":
            t.say("with the")
            say_thing(t, world)
        case "sing":
            song(t)
        case "eat":
            t.choose("food", even("foods"))
    t.say(".")


STARTS = {
    "The": the,
    "Near": near,
    "Then": then,
    "When": when,
    "What": what,
    "Soon": soon,
    "Someone": someone,
    "Everyone": everyone,
    "Look": look,
    "They": they,
}


def hers(t: Teller, world: World, word: str) -> None:
    """Her name is Lily Reed. Her ball is red. Her friend is Tom."""
    person = world.only("girl" if word == "Her" else "boy") or world.people[0]
    relate_people(t, world, "possessive → owner", 1, person)
    weights: Weights = {"name": 1.4} | {thing.noun: 0.6 for thing in person.things}
    friend = world.other(person)
    if friend:
        weights["friend"] = 0.5
    what = t.choose("owned", weights)
    if what == "name":
        t.say("is")
        relate_people(t, world, "pronoun → name", 1, person)
        say_name(t, person, "name by pronoun")
        say_surname(t, world, person)
    elif what == "friend":
        t.say("is")
        say_name(t, friend or person, "name by pronoun")
    else:
        thing = next((one for one in person.things if one.noun == what), person.things[0])
        note_repeat(t, thing.nouns)
        t.say("is")
        say_colour_of(t, world, thing)
    t.say(".")
    world.subject = person
