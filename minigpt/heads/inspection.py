"""A whole look at a model's heads: measured, judged where the text tells what is right.

run, text -> Inspection
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor
from tqdm import tqdm

from minigpt.checkpoint import Run
from minigpt.errors import CONFIG, UserError
from minigpt.heads.capture import capture_attention
from minigpt.heads.changing import importance
from minigpt.heads.effects import losses, mean_outputs, over_all_words, without_each
from minigpt.heads.findings import Finding, describe, most_interesting
from minigpt.heads.judging import Judgement, judge
from minigpt.heads.measure import Measurement, measure
from minigpt.heads.records import Record, history_path, read_history
from minigpt.heads.relations import Story, stories
from minigpt.heads.role_lines import telling
from minigpt.heads.texts import Texts, given_text, own_texts

NUM_STORIES, FEW_STORIES = 512, 192  # to judge on
NOTHING_ASKED = "the model reads too few words of a story (model.context_length) to be asked"
FEWEST_TEXTS = 4  # half of them give the means that stand for a head


@dataclass(frozen=True)
class Inspection:
    """What there is to say of a run's heads; `weights` (L, H, T, T) are of the text shown.

    `judgement` and `history` are there for runs on stories; `effect` (L, H), the loss without each
    head, and `importance` for all runs that were looked at on texts of their own.
    """

    run: Run
    texts: Texts
    measurement: Measurement
    findings: list[Finding]
    chosen: Finding  # of the head to show
    weights: Tensor
    judgement: Judgement | None = None
    history: list[Record] | None = None
    effect: Tensor | None = None
    importance: Tensor | None = None

    @property
    def labels(self) -> list[str]:
        """The tokens of the text shown, to see."""
        return [self.run.tokenizer.label(id) for id in self.texts.shown]

    @property
    def chosen_weights(self) -> Tensor:
        return self.weights[self.chosen.layer, self.chosen.head]

    @property
    def run_and_step(self) -> str:
        return f"{self.run.run_dir}, step {self.run.step:,}"


def inspect(
    run: Run, text: str | None = None, head: tuple[int, int] | None = None, fast: bool = False
) -> Inspection:
    """Looks at all heads on a text, or on the run's own texts; raises UserError.

    `fast` asks fewer stories and leaves out what only illustrates.
    """
    if head is not None:
        require_head(run, head)
    texts = own_texts(run, bar("writing texts")) if text is None else given_text(run, text)
    measurement = measure(run.model, texts.ids, progress=bar("looking at heads"))
    findings = describe(measurement)
    judgement = judge_on_stories(run, measurement, fast) if texts.are_stories else None
    if texts.are_stories and judgement is None:
        texts = replace(texts, note=NOTHING_ASKED)
    more = {}
    if judgement is not None:
        more = {"effect": judgement.effect.mean, "importance": judgement.importance}
    elif text is None and len(told := [ids for ids in texts.ids if len(ids) > 1]) >= FEWEST_TEXTS:
        more = {"effect": effect_on(run, told), "importance": importance(run.model, told)}
    chosen = choose(findings, judgement, head)
    weights = capture_attention(run.model, texts.shown)[:, 0].cpu()
    history = read_history(history_path(run.run_dir), measurement.shape) if judgement else None
    return Inspection(
        run, texts, measurement, findings, chosen, weights, judgement, history, **more
    )


def judge_on_stories(run: Run, measurement: Measurement, fast: bool) -> Judgement | None:
    """None where the model reads too little of a story to be asked anything."""
    seed, length = run.config.seed, run.config.model.context_length
    asked = stories("val", seed, FEW_STORIES if fast else NUM_STORIES, length)
    if not any(story.questions for story in asked):
        return None
    progress = bar("switching heads off")
    return judge(run.model, asked, measurement, seed=seed, fast=fast, progress=progress)


def effect_on(run: Run, texts: Sequence[list[int]]) -> Tensor:
    """How much more loss a token has without each head, replaced by its mean: (L, H)."""
    told = [Story([], ids, ["token"] * len(ids), []) for ids in texts]
    means = mean_outputs(run.model, told[::2])
    base = losses(run.model, told[1::2])
    without = without_each(run.model, told[1::2], means.overall_of, bar("switching heads off"))
    return over_all_words(base, without).mean


def choose(
    findings: list[Finding], judgement: Judgement | None, head: tuple[int, int] | None
) -> Finding:
    """The head to show: the one asked for, or the one that there is most to say of."""
    if head is None and judgement is not None:
        role = min(judgement.roles, key=telling)
        head = (role.layer, role.head) if role.labels else None
    asked = (finding for finding in findings if (finding.layer, finding.head) == head)
    return next(asked, most_interesting(findings))


def require_head(run: Run, head: tuple[int, int], option: str = "--head") -> None:
    """Raises UserError where the run has no such head, or none any more."""
    (layer, place), model = head, run.config.model
    there = model.heads_in(layer) if layer < model.num_layers else ()
    if place not in there:
        allowed = f"the run has L0H0 to L{model.num_layers - 1}H{model.num_heads - 1}"
        if there and place < model.num_heads:
            allowed = f"of layer {layer} there are {', '.join(f'L{layer}H{at}' for at in there)}"
        raise UserError(f"{option}: no L{layer}H{place}; {allowed}; choose one of them", CONFIG)


def bar(name: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Wraps work in a bar, which is seen on a terminal and when it takes long."""
    return lambda work: tqdm(work, name, delay=2, disable=None, leave=False)
