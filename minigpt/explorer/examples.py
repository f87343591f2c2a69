"""Texts to read on the page, and for each head the questions it answers best and worst.

Inspection -> examples, cases by head
"""

from dataclasses import dataclass, field
from typing import Any

from minigpt.heads.changing import Head
from minigpt.heads.evidence import SCORE, halves
from minigpt.heads.inspection import Inspection
from minigpt.heads.judging import Judgement
from minigpt.heads.relations import RELATIONS, Question, Story
from minigpt.heads.role_lines import telling
from minigpt.heads.roles import Role

NUM_TEXTS, NUM_PASSAGES = 8, 6
MOST_RELATIONS = 5  # of a head, to show cases of
LONGEST = 90  # tokens; longer stories are hard to read
LONGEST_PASSAGE = 128


@dataclass
class Examples:
    """The texts, each once; `place` of a story among them by its number in the judgement."""

    texts: list[dict[str, Any]] = field(default_factory=list)
    place: dict[int, int] = field(default_factory=dict)

    def story(self, number: int, story: Story) -> int:
        if number not in self.place:
            self.place[number] = len(self.texts)
            questions = [asked(question) for question in story.questions]
            self.texts.append({"ids": list(story.ids), "questions": questions})
        return self.place[number]


def asked(question: Question) -> dict[str, Any]:
    return {
        "relation": question.relation,
        "words": RELATIONS[question.relation].words,
        "at": RELATIONS[question.relation].at,
        "query": question.query,
        "gold": list(question.gold),
        "others": list(question.others),
    }


def examples(look: Inspection) -> tuple[list[dict[str, Any]], dict[Head, list[dict[str, Any]]]]:
    """The texts, the best case of the most telling head first, and the cases of each head."""
    found = Examples()
    if look.judgement is None:
        texts = [ids[:LONGEST_PASSAGE] for ids in look.texts.ids[:NUM_PASSAGES]]
        return [{"ids": list(ids), "questions": []} for ids in texts], {}
    judgement = look.judgement
    roles = sorted(judgement.roles, key=telling)
    cases = {(role.layer, role.head): cases_of(judgement, role, found) for role in roles}
    readable = [at for at, story in enumerate(judgement.stories) if len(story.ids) <= LONGEST]
    for number in readable[:NUM_TEXTS]:
        found.story(number, judgement.stories[number])
    return found.texts, cases


def cases_of(judgement: Judgement, role: Role, found: Examples) -> list[dict[str, Any]]:
    """The clearest right and wrong answers to what a head is for, among readable stories."""
    relations = relations_of(judgement, role)[:MOST_RELATIONS]
    each = 2 if len(relations) == 1 else 1
    return [
        {
            "relation": relation,
            "words": RELATIONS[relation].words,
            "text": found.story(story, judgement.stories[story]),
            "query": judgement.answers.questions[at].query,
            "right": bool(judgement.answers.values[SCORE][at][role.layer, role.head]),
            "share": round(float(judgement.answers.values["mass"][at][role.layer, role.head]), 4),
        }
        for relation in relations
        for at in best_and_worst(judgement, (role.layer, role.head), relation, each)
        for story in [int(judgement.answers.story_of[at])]
    ]


def best_and_worst(judgement: Judgement, head: Head, relation: str, each: int) -> list[int]:
    """Questions of half B: those answered with the most, and missed with the least attention."""
    answers, in_b = judgement.answers, halves(judgement.answers.num_stories).tolist()
    mass, right = answers.values["mass"], answers.values[SCORE]
    mine = [
        at
        for at, question in enumerate(answers.questions)
        if question.relation == relation
        and in_b[answers.story_of[at]]
        and len(judgement.stories[int(answers.story_of[at])].ids) <= LONGEST
    ]
    order = sorted(mine, key=lambda at: float(mass[at][head]))
    best = [at for at in reversed(order) if right[at][head]][:each]
    return best + [at for at in order if not right[at][head]][:each]


def relations_of(judgement: Judgement, role: Role) -> list[str]:
    """What a head is labelled for, or else what it finds best."""
    labelled = [label.relation for label in role.labels if label.relation]
    scores = {
        one.relation: float(one.score.mean[role.layer, role.head]) - one.best_baseline
        for one in judgement.evidence
    }
    return labelled or [max(scores, key=lambda relation: scores[relation])]
