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
EACH = 2  # best and worst questions of a head's relation
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
    head, relation = (role.layer, role.head), main_relation(judgement, role)
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
    best = [at for at in reversed(order) if right[at][head]][:EACH]
    worst = [at for at in order if not right[at][head]][:EACH]
    return [
        {
            "relation": relation,
            "words": RELATIONS[relation].words,
            "text": found.story(story, judgement.stories[story]),
            "query": answers.questions[at].query,
            "right": bool(right[at][head]),
            "share": round(float(mass[at][head]), 4),
        }
        for at in best + worst
        for story in [int(answers.story_of[at])]
    ]


def main_relation(judgement: Judgement, role: Role) -> str:
    """What a head is labelled for, or else what it finds best."""
    labelled = [label.relation for label in role.labels if label.relation]
    if labelled:
        return labelled[0]
    scores = {
        one.relation: float(one.score.mean[role.layer, role.head]) - one.best_baseline
        for one in judgement.evidence
    }
    return max(scores, key=lambda relation: scores[relation])
