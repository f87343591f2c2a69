"""Pictures of heads can be read: titles tell, labels keep apart, at any number of heads."""

import itertools

import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from minigpt.heads import arcs, course_plots, judging, measure, relation_plots, role_plots, roles
from minigpt.heads.evidence import Evidence
from minigpt.heads.intervals import Interval
from minigpt.heads.relations import RELATIONS, stories

SIZES = [(1, 1), (2, 2), (4, 4), (12, 12)]
KINDS = ["resolves", "together", "looks", "needed"]


def made_up(num_layers, num_heads):
    """A judgement in which every relation is found by some head, in every way there is."""
    torch.manual_seed(num_layers)
    heads = list(itertools.product(range(num_layers), range(num_heads)))
    names = list(RELATIONS)
    kind_of = {name: KINDS[at % len(KINDS)] for at, name in enumerate(names)}
    best = {name: heads[at * 7 % len(heads)] for at, name in enumerate(names)}
    labels = {head: [] for head in heads}
    for name, kind in kind_of.items():
        labels[best[name]].append(roles.Label(kind, name, team=("L0H0",)))
    for head, kind in zip(
        heads, itertools.cycle(["induction", "positional", "broad"]), strict=False
    ):
        if not labels[head] and head[1] % 3:
            labels[head].append(roles.Label(kind, offset=1))
    simple = {"offset": 0.1, "nearest": 0.52, "first": 0.5, "any": 0.51}
    evidence = [
        Evidence(name, 120, 80, 3, simple, 0.2, 0.3, about(shape := (num_layers, num_heads)),
                 about(shape), torch.rand(shape) / 10, best[name])
        for name in names
    ]  # fmt: skip
    nothing = torch.zeros(num_layers, num_heads)
    return judging.Judgement(
        [], None, evidence, [roles.Role(*head, tuple(found)) for head, found in labels.items()],
        about((num_layers, num_heads)), judging.Effects(nothing, nothing), nothing, {}, {}, {},
    )  # fmt: skip


def about(shape):
    mean = torch.rand(shape)
    return Interval(mean, (mean - 0.1).clamp(0), (mean + 0.1).clamp(max=1))


def overlaps(figure):
    """Pairs of texts that cover each other in the drawn picture."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    texts = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
    texts = [t for t in texts if "mathdefault" not in t.get_text()]  # ticks beyond the axes
    boxes = [(t.get_text(), t.get_window_extent(canvas.get_renderer()).padded(-1)) for t in texts]
    boxes = [(text, box) for text, box in boxes if box.width > 0 and box.height > 0]
    return [(a, b) for (a, x), (b, y) in itertools.combinations(boxes, 2) if x.overlaps(y)]


def outside(figure):
    """Texts that leave the picture."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    width, height = canvas.get_width_height()
    texts = [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]
    boxes = [(t.get_text(), t.get_window_extent(canvas.get_renderer())) for t in texts]
    return [text for text, b in boxes
            if b.x0 < -1 or b.y0 < -1 or b.x1 > width + 1 or b.y1 > height + 1]  # fmt: skip


PICTURES = [role_plots.head_map, relation_plots.relations, relation_plots.ablation]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.__name__)
def test_labels_keep_apart(picture, size):
    figure = picture(made_up(*size), "runs/stories-1, step 3,500, 512 stories")
    assert overlaps(figure) == []
    assert outside(figure) == []
    assert role_plots.png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("size", SIZES)
def test_offsets_keep_apart(size):
    scores = {f"offset_{back}": torch.rand(size) for back in range(16)} | {
        "first": torch.rand(size)
    }
    found = measure.Measurement(scores, {}, {}, 1, 1)
    figure = course_plots.offsets(found, "runs/stories-1, step 3,500")
    assert overlaps(figure) == []
    assert outside(figure) == []


def record(step, loss, score):
    one = {"score": [[score]], "low": [[score - 0.1]], "baseline": 0.5, "loss": loss, "floor": 0.0}
    return {"step": step, "relations": dict.fromkeys(RELATIONS, one)}


def test_births_are_told_and_drawn():
    judgement = made_up(1, 1)
    history = [record(10, 2.0, 0.0), record(100, 1.0, 0.5), record(1000, 0.1, 0.95)]
    figure = course_plots.births(judgement, history, "runs/stories-1")
    assert "from step 1,000" in figure.get_suptitle().replace("\n", " ")
    assert overlaps(figure) == []
    assert course_plots.births(judgement, [], "") is None


def test_the_largest_gap_is_in_the_title():
    slots = {
        "surname": {"loss": 0.5, "floor": 0.0, "share": 0.1},
        "refrain": {"loss": 1.2, "floor": 1.0, "share": 0.1},
    }
    figure = course_plots.loss_floor(slots)
    assert figure.get_suptitle() == (
        "0.070 nats a word above the floor; most of it in “surname”: 0.050"
    )
    assert overlaps(figure) == []
    assert course_plots.loss_floor({}) is None


def test_titles_say_what_was_found():
    judgement = made_up(4, 4)
    assert "heads labelled" in role_plots.head_map(judgement).get_suptitle()
    solved = relation_plots.relations(judgement).get_suptitle()
    assert solved.startswith("7 of 13 relations are resolved by heads: ")
    assert relation_plots.ablation(judgement).get_suptitle().startswith("Without L")


def test_kinds_differ_by_letter_and_pattern_not_by_colour_alone():
    marks = [(letter, pattern) for _, letter, pattern in role_plots.KINDS.values()]
    assert len(set(marks)) == len(marks)
    assert set(roles.VERBS) <= set(role_plots.KINDS)


def test_arcs_are_drawn_over_the_words_of_a_story():
    story = next(s for s in stories("val", 1, 20, 128) if s.questions)
    question = story.questions[-1]
    weights = torch.zeros(len(story.ids))
    weights[list(question.gold)] = 0.9 / len(question.gold)
    sheet = arcs.story_with_arcs(story, question, weights, "L2H1 resolves surnames", "1.00")
    assert overlaps(sheet.figure) == []
    words = [text.get_text() for text in sheet.figure.findobj(Text)]
    assert all(story.words[place] in words for place in question.gold)
    assert sheet.png().startswith(b"\x89PNG")
