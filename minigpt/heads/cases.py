"""Which question of which story shows best what a head does, and how that is said.

Judgement, relation, head -> a story, one or two of its questions
"""

from torch import Tensor

from minigpt.heads.changing import Head
from minigpt.heads.evidence import SCORE, halves
from minigpt.heads.judging import Judgement
from minigpt.heads.marks import kind_for
from minigpt.heads.relations import RELATIONS, Question, Story
from minigpt.heads.roles import VERBS

EARLY = 70  # words; a short picture is easier to read


def row_of(weights: Tensor, query: int) -> Tensor:
    """A head's weights (T, T) at a query: (T,), without the first word, summing to 1 again."""
    row = weights[query].clone()
    row[0] = 0
    return row / row.sum().clamp(min=1e-6)


def telling_case(judgement: Judgement, relation: str, head: Head) -> tuple[int, list[Question]]:
    """A story of half B and one or two of its questions that the head answers rightly, if any.

    Those first where right and wrong are different words; hard before easy, early before late.
    """
    answers = judgement.answers
    in_b = halves(answers.num_stories)

    def rank(at: int) -> tuple[bool, bool, bool, bool, float]:
        question, words = answers.questions[at], judgement.stories[int(answers.story_of[at])].words
        wrong = not bool(answers.values[SCORE][at][head])
        twice = {words[place] for place in question.gold} & {words[at] for at in question.others}
        mass = float(answers.values["mass"][at][head])
        return wrong, bool(twice), not question.hard, question.query > EARLY, -mass

    asked = [
        at
        for at, question in enumerate(answers.questions)
        if question.relation == relation and in_b[answers.story_of[at]]
    ]
    best = min(asked, key=rank)
    story, first = int(answers.story_of[best]), answers.questions[best]
    second = [
        answers.questions[at]
        for at in sorted(asked, key=rank)
        if at != best and int(answers.story_of[at]) == story and not rank(at)[0]
    ]
    return story, [first, *(question for question in second if agree(first, question))][:2]


def agree(one: Question, other: Question) -> bool:
    """Whether no place is right for one question and wrong for the other."""
    return not (set(one.gold) & set(other.others) or set(other.gold) & set(one.others))


# ------------------------------------------------------------------------------ in words


def in_words(story: Story, question: Question, row: Tensor) -> str:
    """As in: After “is” the word “red” is due; 98% of the attention is on a right place."""
    share = sum(float(row[at]) for at in question.gold)
    word = story.words[question.query]
    if RELATIONS[question.relation].at:
        gold = " or ".join(dict.fromkeys(f"“{story.words[at]}”" for at in question.gold))
        asked = f"“{word}” depends on {gold}"
    else:
        asked = f"After “{word}” the word “{story.words[question.query + 1]}” is due"
    return f"{asked}; {share:.0%} of the attention is on right places (text's start left out)."


def title_of(judgement: Judgement, relation: str, head: Head) -> str:
    """As in: L2H1 resolves surnames: 1.00 [0.93, 1.00] of 72 (best without looking 0.51)."""
    one, words = judgement.of(relation), RELATIONS[relation].words
    verb = VERBS.get(kind_for(judgement, relation, head), "and")
    score, low, high = (float(v[head]) for v in (one.score.mean, one.score.low, one.score.high))
    found = f"{score:.2f} [{low:.2f}, {high:.2f}] of {one.num_questions}"
    simple = f"best without looking {one.best_baseline:.2f}"
    return f"L{head[0]}H{head[1]} {verb} {words}: {found} ({simple})"
