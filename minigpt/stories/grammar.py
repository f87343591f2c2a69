"""How a story goes: one grammar, for those who tell a story and for those who read one.

Every random decision is a choice among different next words, made when that word is said, and
every other word is forced. So what happened can be read from the words alone, and the chance of
each word given those before it is exact: it is the one that stands here.

a teller, who says words -> a story
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from minigpt.stories.words import words

END = "\n"
OPEN, CLOSE = "“", "”"  # quotation marks that know their side; text has the plain ones
SHE = {"girl": "She", "boy": "He"}
HER = {"girl": "Her", "boy": "His"}
VERBS_OF_TAKING = ("likes", "wants", "hugs", "finds", "shows", "cleans")
Weights = dict[str, float]


class Teller(Protocol):
    """Says the words: freely (a generator) or those of a given text (a reader)."""

    position: int  # of the next word

    def choose(self, slot: str, options: Weights) -> str:
        """Says one of the options, each with a chance in proportion to its weight."""

    def say(self, text: str, slot: str = "form") -> None:
        """Says words that are forced."""

    def relate(self, name: str, shift: int, gold: list[int], others: list[int]) -> None:
        """Notes that the word `shift` before the next one depends on the words at `gold`."""


@dataclass
class Thing:
    noun: str
    colour: str
    owner: "Person"
    nouns: list[int] = field(default_factory=list)  # where it was named
    colours: list[int] = field(default_factory=list)


@dataclass
class Person:
    name: str
    surname: str
    child: str  # girl or boy
    names: list[int] = field(default_factory=list)  # where the name was said
    surnames: list[int] = field(default_factory=list)
    things: list[Thing] = field(default_factory=list)


@dataclass(frozen=True)
class Mix:
    """What kinds of stories there are, and how often."""

    two_people: float = 0.55
    same_gender: float = 0.25
    endings: tuple[float, ...] = (0.0, 0.04, 0.2, 0.35, 0.5, 0.7)
    mismatch: float = 0.5  # of the numbers of an animal and of the one beside it
    held_out: bool | None = False  # True: bind only what training never binds; None: anything


@dataclass
class World:
    mix: Mix
    people: list[Person] = field(default_factory=list)
    subject: Person | None = None  # of the last sentence

    @property
    def things(self) -> list[Thing]:
        return [thing for person in self.people for thing in person.things]

    def only(self, child: str) -> Person | None:
        """Whom `she`, `her` or `the girl` means: the only one, or else the last subject."""
        fitting = [person for person in self.people if person.child == child]
        if len(fitting) == 1:
            return fitting[0]
        return self.subject if self.subject in fitting else None

    def other(self, person: Person) -> Person | None:
        return next((one for one in self.people if one is not person), None)


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


# ------------------------------------------------------------------------------ sentences


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
    children = {child: world.only(child) for child in ("girl", "boy") if world.only(child)}
    weights = dict.fromkeys(colours, 1.2) | dict.fromkeys(nouns, 1.0)
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
    t.choose("attractor", animal_weights(1.0, many, world.mix.mismatch, word))
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
    word = t.choose("subject", animal_weights(1.0, is_many(beside), world.mix.mismatch, beside))
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
    weights: Weights = {"name": 1.2} | {thing.noun: 1.2 for thing in person.things}
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


# ------------------------------------------------------------------------------ what people do


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
    word = t.choose("pattern", {"the": 1.2} | dict.fromkeys(owners, 1.0))
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
    match t.choose("pattern", {"I": 1.3, "My": 1.0, "Hello": 0.4}):
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


# ------------------------------------------------------------------------------ bound words


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


# ------------------------------------------------------------------------------ weights


def likely(weights: Weights) -> Weights:
    return {word: weight for word, weight in weights.items() if weight}


@cache
def even(group: str) -> Weights:
    """All words of a list, equally likely; together they weigh 10."""
    members = getattr(words(), group)
    return dict.fromkeys(members, 10 / len(members))


@cache
def new_names(first: str, same_gender: float) -> Weights:
    girls, boys = words().girls, words().boys
    if not first:
        return dict.fromkeys(girls + boys, 1.0)
    same, other = (girls, boys) if first in girls else (boys, girls)
    weights = dict.fromkeys(same, same_gender) | dict.fromkeys(other, 1 - same_gender)
    weights.pop(first)
    return likely(weights)


@cache
def surnames_for(name: str, taken: str, held_out: bool | None) -> Weights:
    members = [s for s in words().surnames if held_out in (None, is_held_out(name, s))]
    return {surname: 1 for surname in members if surname != taken}


@cache
def things_for(colour: str, taken: str, held_out: bool | None) -> Weights:
    members = [n for n in words().things if held_out in (None, is_held_out(colour, n))]
    return {noun: 1 for noun in members if noun != taken}


@cache
def colours_but(taken: str) -> Weights:
    return {colour: 1 for colour in words().colours if colour != taken}


def is_held_out(first: str, second: str) -> bool:
    """Whether training never binds this pair: every fifth by the words' places in their lists."""
    return (place_of(first) + place_of(second)) % 5 == 0


@cache
def place_of(word: str) -> int:
    known = words()
    groups = (known.girls, known.boys, known.surnames, known.colours, known.things)
    return next(group.index(word) for group in groups if word in group)


def song_words(line: list[str]) -> Weights:
    """Words that the song has not had; from the third on, the line may end."""
    weights = dict.fromkeys((word for word in words().lexicon if word not in line), 1.0)
    if len(line) >= 2:
        weights[","] = 0.6 * len(weights)
    return weights


@cache
def animal_weights(
    total: float, many: bool | None = None, mismatch: float = 0.5, but: str = ""
) -> Weights:
    """Animals in both numbers; beside `many` others, `mismatch` is the share of the other number."""
    weights = {}
    for pair in words().animals:
        for number, word in enumerate(pair):
            share = 0.5 if many is None else mismatch if number != many else 1 - mismatch
            if but not in pair and share:
                weights[word] = total * share / len(words().animals)
    return weights


@cache
def is_many(word: str) -> bool:
    return any(word == many for _, many in words().animals)
