"""Pictures of heads: clear at every size, and titles that say what was found."""

import itertools
import math
import random
import struct
from dataclasses import replace

import pytest
import torch
from matplotlib.text import Text

from minigpt.heads import (
    attention_arcs,
    bar_plots,
    birth_plot,
    cases,
    effect_plot,
    history,
    map_plot,
    marks,
    plots,
    relations,
    score_plot,
)
from minigpt.heads.asking import Answers
from minigpt.heads.evidence import Evidence
from minigpt.heads.intervals import Interval
from minigpt.heads.judging import Effects, Judgement
from minigpt.heads.measure import Measurement
from minigpt.heads.relations import RELATIONS
from minigpt.heads.roles import VERBS, Label, Role
from minigpt.heads.scores import NUM_OFFSETS

SIZES = [(2, 2), (4, 4), (12, 12)]
SUBTITLE = "runs/stories, step 3,500; 256 stories $x_1$"
NAN = float("nan")
DPI = 120

# ------------------------------------------------------------------------------ made-up heads


def around(mean, reach):
    return Interval(mean, mean - reach, mean + reach)


def evidence_of(name, shape, draw):
    score = torch.rand(shape, generator=draw) * 0.9
    there = torch.rand(shape, generator=draw) ** 6 * 4
    if name in ("verb → subject", "adjective → noun"):
        there = there * NAN  # no word depends on it
    simple = dict.fromkeys(("nearest", "first", "any"), NAN if RELATIONS[name].alone else 0.5)
    elsewhere = torch.rand(shape, generator=draw) * 0.05
    best = divmod(int(score.argmax()), shape[1])
    return Evidence(
        name, 123, 60, 3, {"offset": 0.31, **simple}, 0.42, 0.63, around(score, 0.08),
        around(there, 0.02), elsewhere, best,
    )  # fmt: skip


def made_up(num_layers, num_heads):
    """A judgement with all kinds of roles, whatever the numbers say."""
    draw, pick = torch.Generator().manual_seed(num_heads), random.Random(num_heads)
    shape = num_layers, num_heads
    found = [evidence_of(name, shape, draw) for name in RELATIONS]
    places = itertools.product(range(num_layers), range(num_heads))
    roles = [
        Role(*place, labels_of(kind, pick))
        for place, kind in zip(places, itertools.cycle(marks.KINDS), strict=False)
    ]
    for one in found[::3]:
        at = one.best[0] * num_heads + one.best[1]
        roles[at] = replace(roles[at], labels=(Label("resolves", one.relation),))
    effect = around(torch.rand(shape, generator=draw) ** 4 * 0.3, 0.01)
    answers, unused = Answers([], torch.tensor([]), 0, {}, torch.zeros(0)), torch.zeros(shape)
    effects = Effects(unused, unused)
    return Judgement([], answers, found, roles, effect, effects, unused, {}, {}, {})


def labels_of(kind, pick):
    if kind == marks.UNLABELLED:
        return ()
    about = pick.sample(list(RELATIONS), pick.randint(1, 6)) if kind in VERBS else [None]
    return tuple(Label(kind, relation, 1) for relation in about)


def measured(num_layers, num_heads):
    draw = torch.Generator().manual_seed(1)
    profiles = torch.rand(NUM_OFFSETS, num_layers, num_heads, generator=draw) ** 8
    scores = {f"offset_{back}": profile for back, profile in enumerate(profiles / profiles.sum(0))}
    return Measurement(scores | {"first": profiles[0]}, {}, {}, 64, 5000)


def grown(num_layers, num_heads, last=3500):
    """A history where all heads learn all relations, one relation after another."""
    records = []
    for step in history.log_spaced(last):
        learnt = {}
        for number, name in enumerate(RELATIONS):
            known = 1 / (1 + math.exp(number + 4 - 1.5 * math.log(step)))
            score = [[known] * num_heads] * num_layers
            low = [[max(known - 0.1, 0)] * num_heads] * num_layers
            loss = NAN if RELATIONS[name].alone else 6 * (1 - known) + 0.05
            learnt[name] = {"score": score, "low": low, "baseline": 0.5, "loss": loss}
        records.append({"step": step, "relations": learnt, "slots": {}, "generic": {}})
    return records


SLOTS = {
    name: {"loss": 0.1 * number + 0.01 * number**2, "floor": 0.1 * number, "share": 0.9 / number}
    for number, name in enumerate([*RELATIONS, *marks.KINDS, "a kind with a long name"], 1)
}


def arcs(num_layers, num_heads):
    """Two questions of a story, put to a head that looks at places drawn at random."""
    story = relations.story("val", 0, 1, 256)
    draw = torch.Generator().manual_seed(3)
    asked = [q for q in story.questions if q.others][:2]
    weights = (torch.rand(len(story.ids), len(story.ids), generator=draw) * 12).softmax(-1)
    title = cases.title_of(made_up(num_layers, num_heads), asked[0].relation, (0, 1))
    rows = [(question, cases.row_of(weights, question.query)) for question in asked]
    return attention_arcs.attention_arcs(story, rows, title, SUBTITLE)


# ------------------------------------------------------------------------------ every picture

PICTURES = {
    "head_map": lambda size: map_plot.head_map(made_up(*size), SUBTITLE),
    "relations": lambda size: score_plot.relations(made_up(*size), SUBTITLE),
    "ablation": lambda size: effect_plot.ablation(made_up(*size), SUBTITLE),
    "births": lambda size: birth_plot.births(made_up(*size), grown(*size), SUBTITLE),
    "offsets": lambda size: bar_plots.offsets(measured(*size), SUBTITLE),
    "loss_floor": lambda size: bar_plots.loss_floor(SLOTS, SUBTITLE),
    "attention_arcs": lambda size: arcs(*size),
}


def require_clear(figure):
    """No text lies over another, or outside of the picture."""
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    found, whole = [(text.get_text(), text.get_window_extent()) for text in texts], figure.bbox
    for text, box in found:
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= whole.x1 and box.y1 <= whole.y1
        assert inside, f"{text!r} leaves the picture"
    for (one, a), (other, b) in itertools.combinations(found, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide <= 1 or high <= 1, f"{one!r} lies over {other!r}"


def title_of(sheet):
    return " ".join(t.get_text() for t in sheet.axes.texts if t.get_size() == plots.TITLE)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_clear_at_every_size(name, size):
    sheet = PICTURES[name](size)
    require_clear(sheet.figure)
    png = sheet.png()  # a missing glyph would warn, and a warning is an error here
    width, height = struct.unpack(">II", png[16:24])
    assert png.startswith(b"\x89PNG")
    assert 5 * DPI <= width <= 14 * DPI and 2 * DPI <= height <= 13 * DPI
    assert sheet.figure.get_facecolor() == (1, 1, 1, 1)


def test_overlaps_are_found():
    sheet = map_plot.head_map(made_up(2, 2))
    sheet.text("over the title", 0.2, 0.35, 13)
    with pytest.raises(AssertionError, match="lies over"):
        require_clear(sheet.figure)


def test_no_two_kinds_are_told_apart_by_hue_alone():
    """Each has its own letter, and its own pattern or one that is dark where the other is light."""
    looks = list(marks.KINDS.values())
    assert len({look.letter for look in looks}) == len(looks)
    for one, other in itertools.combinations(looks, 2):
        assert (one.pattern, one.dark) != (other.pattern, other.dark)


# ------------------------------------------------------------------------------ what they say


def with_labels(judgement, labels):
    """The judgement with these labels (by head) and no others."""
    roles = [
        replace(role, labels=labels.get((role.layer, role.head), ())) for role in judgement.roles
    ]
    return replace(judgement, roles=roles)


LABELS = {
    (0, 0): (Label("looks", "agreement"),),
    (1, 0): (Label("positional", offset=1),),
    (1, 1): (Label("resolves", "surname"), Label("resolves", "refrain"), Label("induction")),
}


def test_the_map_counts_heads_that_only_look_apart():
    title = title_of(map_plot.head_map(with_labels(made_up(2, 2), LABELS)))
    assert title.startswith("2 of 4 heads labelled: L1H1 resolves surnames, refrains; L1H0 posit")
    assert title.endswith("1 more only looks")


def test_a_model_without_any_label_is_drawn_too():
    nothing = with_labels(made_up(2, 2), {})
    nothing.effect.mean[0, 0] = NAN
    assert title_of(map_plot.head_map(nothing)) == "0 of 4 heads labelled"
    title = title_of(score_plot.relations(nothing))
    assert title == f"Heads resolve 0 of {len(RELATIONS)} relations"


def test_resolved_relations_come_first():
    sheet = score_plot.relations(with_labels(made_up(2, 2), LABELS))
    names = {RELATIONS[name].words for name in RELATIONS}
    rows = [text for text in sheet.axes.texts if text.get_text() in names]
    first = sorted(rows, key=lambda text: text.get_position()[1])[:2]
    assert {text.get_text() for text in first} == {"surnames", "refrains"}
    assert "(L1H1)" in title_of(sheet)


def test_what_is_needed_is_framed_as_the_rule_says():
    one = evidence_of("surname", (1, 2), torch.Generator().manual_seed(1))
    there = around(torch.tensor([[3.0, 0.2]]), 0.01)
    one = replace(one, there=there, elsewhere=torch.tensor([[0.1, 0.1]]))
    assert effect_plot.needed(one, Role(0, 0, ()))
    assert not effect_plot.needed(one, Role(0, 1, ()))  # not three times as much as elsewhere
    assert not effect_plot.needed(replace(one, num_stories=3), Role(0, 0, ()))
    title = effect_plot.ablation_title([one], [Role(0, 0, ()), Role(0, 1, ())])
    assert title.startswith("Without L0H0, surnames lose 3.00 nats a word, other words 0.10")
    assert "1 of 2 heads" in title


def test_births_are_told_first_to_last():
    judgement = with_labels(made_up(2, 2), LABELS)
    records = grown(2, 2, last=30_000)
    step = history.birth(records, "surname", (1, 1))
    later = history.birth(records, "refrain", (1, 1))
    title = title_of(birth_plot.births(judgement, records))
    assert title.startswith(f"L1H1 begins to resolve surnames at step {step:,}, L1H1 refrains")
    assert f"at {later:,}" in title and step < later
    assert "No birth is certain" in title_of(birth_plot.births(judgement, grown(2, 2)[:1]))
    assert birth_plot.births(judgement, []) is None


def test_an_unknown_loss_is_drawn_as_such():
    records = grown(2, 2)
    for record in records:
        record["relations"]["surname"] |= {"loss": None, "floor": None}
        record["relations"]["refrain"] |= {"floor": 0.1}
    require_clear(birth_plot.births(made_up(2, 2), records).figure)


def test_the_largest_gap_weighs_how_often_such_words_come():
    slots = {
        "rare": {"loss": 3.0, "floor": 1.0, "share": 0.01},
        "common": {"loss": 1.1, "floor": 1.0, "share": 0.99},
    }
    title = title_of(bar_plots.loss_floor(slots))
    assert title.startswith("The largest gap is “common”: 83% of the 0.119 nats")
    reached = {"common": {"loss": 1.0, "floor": 1.0, "share": 1.0}}
    assert title_of(bar_plots.loss_floor(reached)) == "No kind of word is above its floor"


def test_offsets_name_the_most_focused_head():
    measurement = measured(2, 2)
    measurement.scores["offset_1"][1, 0] = 0.97
    title = title_of(bar_plots.offsets(measurement))
    assert title.startswith("L1H0 gives 97% of its attention to the token before")


# ------------------------------------------------------------------------------ arcs


def test_no_line_begins_with_punctuation():
    story = relations.story("val", 0, 2, 256)
    words = attention_arcs.shown_words(story, story.questions)
    places = attention_arcs.laid_out(words)
    lines = [list(line) for _, line in itertools.groupby(zip(places, words, strict=True),
                                                         key=lambda pair: pair[0].y)]  # fmt: skip
    assert len(lines) > 1
    for line in lines:
        assert line[0][1].strip() not in ",.!?"
        assert line[-1][0].x + line[-1][0].width <= attention_arcs.WIDTH
        for (one, _), (other, _) in itertools.pairwise(line):
            assert one.x + one.width <= other.x + 1e-9


def test_a_row_is_without_the_first_word():
    weights = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.6, 0.1, 0.3]])
    assert cases.row_of(weights, 2).tolist() == pytest.approx([0, 0.25, 0.75])
    assert weights[2, 0] == pytest.approx(0.6)


def test_the_telling_case_is_answered_rightly_hard_and_of_half_b():
    found = relations.stories("val", 0, 60, 256)
    asked = [(at, q) for at, story in enumerate(found) for q in story.questions]
    right = torch.tensor([[[float(at % 4 == 1)]] for at, _ in asked])
    mass = torch.rand(right.shape, generator=torch.Generator().manual_seed(1))
    answers = Answers(
        [q for _, q in asked], torch.tensor([at for at, _ in asked]), len(found),
        {"strict": right, "mass": mass}, torch.zeros(0),
    )  # fmt: skip
    judgement = replace(made_up(1, 1), stories=found, answers=answers)
    story, questions = cases.telling_case(judgement, "surname", (0, 0))
    assert story % 4 == 1 and questions[0].hard
    assert 1 <= len(questions) <= 2
    assert all(q.relation == "surname" and q in found[story].questions for q in questions)
