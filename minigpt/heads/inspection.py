"""A whole look at a model's heads: measured, put into words, drawn.

run, text -> Inspection -> files
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from tqdm import tqdm

from minigpt import storage
from minigpt.checkpoint import Run
from minigpt.errors import CONFIG, UserError
from minigpt.heads import table
from minigpt.heads.capture import capture_attention
from minigpt.heads.findings import Finding, describe, most_interesting
from minigpt.heads.measure import Measurement, measure
from minigpt.heads.texts import Texts, given_text, own_texts


@dataclass(frozen=True)
class Inspection:
    """What there is to say of a run's heads; `weights` (L, H, T, T) are of the text shown."""

    run: Run
    texts: Texts
    measurement: Measurement
    findings: list[Finding]
    chosen: Finding  # of the head to show
    weights: Tensor

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


def inspect(run: Run, text: str | None = None, head: tuple[int, int] | None = None) -> Inspection:
    """Looks at all heads on a text, or on the run's own texts; raises UserError."""
    require_head(run, head)
    texts = own_texts(run, bar("writing texts")) if text is None else given_text(run, text)
    measurement = measure(run.model, texts.ids, progress=bar("looking at heads"))
    findings = describe(measurement)
    chosen = next((f for f in findings if (f.layer, f.head) == head), most_interesting(findings))
    weights = capture_attention(run.model, texts.shown)[:, 0].cpu()
    return Inspection(run, texts, measurement, findings, chosen, weights)


def require_head(run: Run, head: tuple[int, int] | None) -> None:
    layers, heads = run.config.model.num_layers, run.config.model.num_heads
    if head is not None and not (head[0] < layers and head[1] < heads):
        allowed = f"the run has L0H0 to L{layers - 1}H{heads - 1}"
        raise UserError(f"--head: no L{head[0]}H{head[1]}; {allowed}; choose one of them", CONFIG)


def bar(name: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Wraps work in a bar, which is seen on a terminal and when it takes long."""
    return lambda work: tqdm(work, name, delay=2, disable=None, leave=False)


# ------------------------------------------------------------------------------ files


def write_files(inspection: Inspection, folder: Path, scores: Path | None = None) -> list[Path]:
    """The scores as CSV, all heads and the chosen one as pictures; returns where they are."""
    from minigpt.heads.plots import grid_picture, head_picture  # matplotlib takes a second

    look, chosen = inspection, inspection.chosen
    alone = len(look.texts.ids) == 1
    shown = "picture and scores" if alone else "picture: one that repeats much, scores: all"
    subtitle = f"{look.run_and_step}; {shown} of {look.texts.origin}"
    title = f"{chosen.name} {chosen.words}"
    files = {
        scores or folder / "scores.csv": table.to_csv(look.measurement, look.findings).encode(),
        folder / "attention.png": grid_picture(
            look.weights, look.labels, look.findings, f"{subtitle}; rows look at columns"
        ).png(),
        folder / f"attention_{chosen.name}.png": head_picture(
            look.chosen_weights, look.labels, title, subtitle
        ).png(),
    }
    for path, data in files.items():
        storage.write_bytes(path, data)
    return list(files)
