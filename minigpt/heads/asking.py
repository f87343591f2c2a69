"""Where every head looks when a story asks: at a right place, at a wrong one, or elsewhere.

Column 0, where heads rest, is left out, and each row sums to 1 again. Every measure comes twice:
of the attention weights, and of those weights times how much a token adds (`output_sizes`).

model, stories -> Answers, one for each question, layer and head
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from minigpt.generation import device_of, evaluating
from minigpt.heads.capture import at_once, in_place, losses_of, output_sizes, pad, watching
from minigpt.heads.relations import Question, Story
from minigpt.model import GPT, TransformerBlock

WEIGHTED = "_weighted"
MEASURES = ("strict", "forced", "mass", "lift")
ALL = (*MEASURES, *(name + WEIGHTED for name in MEASURES))
LEFTOVER = 1e-6  # a row with less beside the first token looks nowhere


@dataclass(frozen=True)
class Answers:
    """What was asked (N questions, each of a story) and how the heads answered: (N, L, H).

    `strict`: 1 if the largest weight is on a right place; `forced`: 1 if a right place has more
    than every wrong one; `mass`: the weight on right places; `lift`: how many times that is what
    a head would give them that looks at all tokens alike. `losses` (S, T) are the model's.
    """

    questions: list[Question]
    story_of: Tensor  # (N,)
    num_stories: int
    values: dict[str, Tensor]
    losses: Tensor


def ask(model: GPT, stories: Sequence[Story], measures: Sequence[str] = ALL) -> Answers:
    """Puts all questions of all stories to all heads, and keeps some measures of the answers."""
    questions, story_of, parts, losses = [], [], [], []
    width = max(len(story.ids) for story in stories)
    number = at_once(model, width)
    for first in range(0, len(stories), number):
        batch = stories[first : first + number]
        here = [(row, q) for row, story in enumerate(batch) for q in story.questions]
        questions += [question for _, question in here]
        story_of += [first + row for row, _ in here]
        values, lost = answers_of(model, batch, here, measures)
        parts.append(values)
        losses.append(F.pad(lost, (0, width - lost.size(1)), value=torch.nan))
    values = {name: torch.cat([part[name] for part in parts]) for name in measures}
    return Answers(questions, torch.tensor(story_of), len(stories), values, torch.cat(losses))


@torch.no_grad()
def answers_of(
    model: GPT,
    stories: Sequence[Story],
    asked: Sequence[tuple[int, Question]],
    measures: Sequence[str],
) -> tuple[dict[str, Tensor], Tensor]:
    """The answers to (story, question) pairs of one batch, (N, L, H) each, and the losses."""
    ids = pad([story.ids for story in stories]).to(device_of(model))
    story, query = torch.tensor(
        [[row for row, _ in asked], [question.query for _, question in asked]],
        dtype=torch.long,
        device=ids.device,
    )
    gold = marked(ids.size(1), [question.gold for _, question in asked]).to(ids.device)
    others = marked(ids.size(1), [question.others for _, question in asked]).to(ids.device)
    found: list[dict[str, Tensor]] = []

    def look(_: int, block: TransformerBlock, inputs: Tensor) -> None:
        weights = block.attention.attention_weights(inputs).float()
        rows = in_place(block, weights[story, :, query], model.config.num_heads)  # (N, H, T)
        answers = dict(measured(rows, gold, others, query))
        if any(name.endswith(WEIGHTED) for name in measures):
            sizes = in_place(block, output_sizes(block.attention, inputs), rows.size(1))[story]
            weighted = measured(rows * sizes, gold, others, query)
            answers |= {name + WEIGHTED: value for name, value in weighted}
        found.append({name: answers[name] for name in measures})

    with evaluating(model), watching(model, look):
        losses = losses_of(model(ids.clamp(min=0)), ids)
    values = {name: torch.stack([layer[name] for layer in found], 1).cpu() for name in measures}
    return values, losses.cpu()


def marked(length: int, places: Sequence[Sequence[int]]) -> Tensor:
    """(N, T), true at the places of each question."""
    marks = torch.zeros(len(places), length, dtype=torch.bool)
    for row, columns in enumerate(places):
        marks[row, list(columns)] = True
    return marks


def measured(
    rows: Tensor, gold: Tensor, others: Tensor, query: Tensor
) -> Iterator[tuple[str, Tensor]]:
    """Measures of attention rows (N, H, T) at the queries (N,): (N, H) each."""
    rows = rows.clone()
    rows[..., 0] = 0
    rows = rows / rows.sum(-1, keepdim=True).clamp(min=LEFTOVER)
    on_gold = rows * gold[:, None]
    mass = on_gold.sum(-1)
    best_gold = on_gold.amax(-1)
    looked_at = allowed(gold, query)[:, None] * rows
    yield "strict", ((best_gold > 0) & (best_gold >= looked_at.amax(-1))).float()
    yield "forced", (best_gold > (rows * others[:, None]).amax(-1)).float()
    yield "mass", mass
    yield "lift", mass * (query / gold.sum(-1))[:, None]


def allowed(gold: Tensor, query: Tensor) -> Tensor:
    """Where a head may look to be right or wrong: the query itself only if it is right."""
    places = torch.arange(gold.size(1), device=gold.device)
    return (places != query[:, None]) | gold
