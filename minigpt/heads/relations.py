"""What heads can be asked about stories: which earlier words a word depends on.

A model predicts the word at t from the position before it. So a relation is asked either where
its word stands (`at`: a pronoun looks for its referent) or one position earlier, where the word
is about to be written (`pre`: after "I am", whose name?).

seed -> stories, each with its questions
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from minigpt.stories import spelling, tellers
from minigpt.stories.corpus import MIXES, story_words
from minigpt.stories.words import words

SENTENCE_ENDS = (".", "!", "?")
WHO = ("name by pronoun", "owned")  # words that depend on who is meant


@dataclass(frozen=True)
class Relation:
    """`at` says where it is asked; `slots` of the words that depend on it, for `at` only.

    It is asked where something competes with the right places, unless it is `alone`.
    """

    at: bool
    words: str  # as in: resolves …
    slots: tuple[str, ...] = ()
    alone: bool = False


RELATIONS = {
    "pronoun → referent": Relation(True, "pronouns", WHO),
    "pronoun → name": Relation(False, "names from pronouns"),
    "possessive → owner": Relation(True, "possessives", WHO),
    "owned thing": Relation(False, "what someone owns"),
    "object recall": Relation(False, "objects from colours"),
    "colour recall": Relation(False, "colours of things"),
    "owner recall": Relation(False, "owners"),
    "surname": Relation(False, "surnames"),
    "refrain": Relation(False, "refrains"),
    "agreement": Relation(False, "agreement"),
    "verb → subject": Relation(True, "subjects of verbs"),
    "repeated name": Relation(True, "repeated names", ("surname",), alone=True),
    "adjective → noun": Relation(True, "adjectives of nouns", alone=True),
}


@dataclass(frozen=True)
class Question:
    """At `query`, the places in `gold` are the right ones to look at, those in `others` wrong.

    A place that holds the same word as a right one is not wrong.

    The words at `targets` are those that could not be known without.
    """

    relation: str
    query: int
    gold: tuple[int, ...]
    others: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def hard(self) -> bool:
        """Whether the nearest candidate is a wrong one."""
        return bool(self.others) and max(self.others) > max(self.gold)

    @property
    def distance(self) -> int:
        """How far back the nearest right place is."""
        return self.query - max(self.gold)


@dataclass(frozen=True)
class Story:
    """Its words and ids, the slot of each, and what can be asked about it."""

    words: list[str]
    ids: list[int]
    slots: list[str]
    questions: list[Question]
    floors: list[float] = field(default_factory=list)  # the lowest loss possible, in nats

    def same_gender(self, question: Question) -> bool:
        """Whether right and wrong candidates are both girls, or both boys."""
        names = {self.words[place] for place in (*question.gold, *question.others)}
        return names <= set(words().girls) or names <= set(words().boys)


def stories(split: str, seed: int, number: int, context_length: int, first: int = 0) -> list[Story]:
    """Stories of a split from `first` on, as far as a model with this context can read them."""
    return [story(split, seed, first + index, context_length) for index in range(number)]


def story(split: str, seed: int, index: int, context_length: int) -> Story:
    told = story_words(split, seed, index)
    reader = tellers.read(told, MIXES[split])
    length = min(len(told) - 1, context_length)
    questions = [q for relation in reader.relations if (q := question(relation, reader, length))]
    ids = [spelling.id_of(word) for word in told[:length]]
    return Story(told, ids, reader.slots, questions, reader.surprisals)


def question(found: tellers.Relation, reader: tellers.Reader, length: int) -> Question | None:
    """A relation of a story with its targets; None if nothing competes or it is beyond sight."""
    relation = RELATIONS[found.name]
    right = {reader.words[place] for place in found.gold}
    others = tuple(place for place in found.others if reader.words[place] not in right)
    if not (others or relation.alone):
        return None
    targets = dependants(found.query, relation.slots, reader) if relation.at else [found.query + 1]
    targets = [target for target in targets if target < length]
    if found.query >= length or not (relation.at or targets):
        return None
    return Question(found.name, found.query, found.gold, others, tuple(targets))


def dependants(query: int, slots: Sequence[str], reader: tellers.Reader) -> list[int]:
    """The words of certain slots after `query`, up to the sentence's end."""
    found = []
    for place in range(query + 1, len(reader.words)):
        if reader.words[place] in SENTENCE_ENDS:
            break
        if reader.slots[place] in slots:
            found.append(place)
    return found


# ------------------------------------------------------------------------------ minimal pairs


def exchanged(story: Story, question: Question) -> tuple[list[str], str] | None:
    """The words with right and wrong candidate exchanged, and what the right answer is then.

    Where they don't fit each other's places (a girl's name for a boy's), or where there is no
    other, a word of the same kind takes the place of the right one. None if there is no such word.
    """
    right = story.words[question.gold[0]]
    wrong = rival(story, question, right)
    if wrong is None:
        return None
    changed = list(story.words)
    for place in question.gold:
        changed[place] = wrong
    if wrong in {story.words[place] for place in question.others}:
        for place in question.others:
            changed[place] = right if story.words[place] == wrong else changed[place]
    return changed, wrong


def rival(story: Story, question: Question, right: str) -> str | None:
    """The word to put in the place of the right one."""
    fitting = alike(right)
    others = [story.words[place] for place in question.others]
    known = next((word for word in others if word in fitting and word != right), None)
    return known or next((word for word in fitting if word not in story.words), None)


@cache
def alike(word: str) -> tuple[str, ...]:
    """Words that could stand in the same places: the other number, another girl's name."""
    known = words()
    for pair in (*known.animals, *known.doings, ("is", "are"), ("sees", "see")):
        if word in pair:
            return tuple(other for other in pair if other != word)
    groups = (known.girls, known.boys, known.surnames, known.colours, known.things)
    own = next((group for group in groups if word in group), [word])
    at = own.index(word)
    return tuple(own[at + 1 :] + own[:at])
