"""All about one relation: every head's measures, how hard the questions were, best and worst cases.

Judgement, relation -> lines
"""

import math

from minigpt.heads.evidence import SCORE, Evidence, halves
from minigpt.heads.judging import Judgement
from minigpt.heads.relations import Question, Story
from minigpt.heads.role_files import means, name_of
from minigpt.stories import spelling

COLUMNS = {
    "strict": "right",
    "forced": "of two",
    "mass": "weight",
    "lift": "lift",
    "strict_weighted": "right, sized",
    "strict_hard": "hard",
    "strict_near": "near",
    "strict_far": "far",
    "strict_same_gender": "same gender",
}
KEY = [
    "right: largest weight on a right place; of two: more than on any wrong candidate; weight: on",
    "right places; lift: times an even head's; sized: weight times what a token adds; hard: the",
    "nearest candidate is wrong; near: at most 8 tokens back; lost: nats there without the head.",
]
NUM_CASES = 2


def relation_lines(judgement: Judgement, relation: str) -> list[str]:
    """A table of all heads, then cases of the best one."""
    one = judgement.of(relation)
    found = means(judgement, relation)
    rows = [["head", *COLUMNS.values(), "lost", "role in this"]]
    roles = sorted(judgement.roles, key=lambda role: -float(one.score.mean[role.layer, role.head]))
    for role in roles:
        head = role.layer, role.head
        labels = [label.kind for label in role.labels if label.relation == relation]
        numbers = [number(float(found[name][head])) for name in COLUMNS]
        lost = number(float(one.there.mean[head]), "+")
        rows.append([role.name, *numbers, lost, *(labels or ["–"])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [title(one), "", *lines, *KEY, "", *cases(judgement, one)]


def number(value: float, sign: str = "") -> str:
    return "–" if math.isnan(value) else f"{value:{sign}.2f}"


def title(one: Evidence) -> str:
    simple = ", ".join(f"{k} {v:.2f}" for k, v in one.baselines.items() if v == v)
    asked = f"{one.num_questions} questions in {one.num_stories} stories"
    return f"{one.relation}: {asked}; without looking: {simple}; untrained: {one.twin:.2f}"


def cases(judgement: Judgement, one: Evidence) -> list[str]:
    """Questions that the best head answers with most and with least weight on the right place."""
    answers, in_b = judgement.answers, halves(judgement.answers.num_stories)
    layer, head = one.best
    mine = [
        (float(answers.values["mass"][at, layer, head]), at)
        for at, question in enumerate(answers.questions)
        if question.relation == one.relation and in_b[answers.story_of[at]]
    ]
    mine.sort()
    lines = []
    for name, some in (("worst", mine[:NUM_CASES]), ("best", mine[::-1][:NUM_CASES])):
        for mass, at in some:
            story = judgement.stories[answers.story_of[at]]
            right = bool(answers.values[SCORE][at, layer, head])
            told = f"{'right' if right else 'wrong'}, weight {mass:.2f}"
            lines.append(
                f"{name} of {name_of((layer, head))} ({told}): {case(story, answers.questions[at])}"
            )
    return lines


def case(story: Story, question: Question) -> str:
    """The text up to the query, right places in [brackets], the query's word in <these>."""
    marked = []
    for place, word in enumerate(story.words[1 : question.query + 1], 1):
        piece = spelling.piece_of(word)
        space, plain = piece[: len(piece) - len(piece.lstrip())], piece.lstrip()
        if place == question.query:
            plain = f"<{plain}>"
        elif place in question.gold:
            plain = f"[{plain}]"
        marked.append(space + plain)
    return "".join(marked).strip()
