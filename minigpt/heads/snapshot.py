"""A picture of all heads on one text, at any time of a training.

model, text -> PNG
"""

from collections.abc import Sequence

from minigpt.checkpoint import Run
from minigpt.heads.capture import capture_attention
from minigpt.heads.findings import describe
from minigpt.heads.measure import measure
from minigpt.heads.plots import grid_picture
from minigpt.heads.sheet import Sheet
from minigpt.model import GPT
from minigpt.tokenizer import Tokenizer

MOST_TOKENS = 48


def draw_attention(run: Run, text: str) -> Sheet:
    """All heads of a run on a text, a picture that notebooks show; `.png()` are its bytes.

    Raises UserError where the text has characters that the run does not know.
    """
    ids = run.tokenizer.encode(text)[: run.config.model.context_length]
    return draw_heads(run.model, run.tokenizer, ids, f"{run.run_dir}, step {run.step:,}")


def draw_heads(model: GPT, tokenizer: Tokenizer, ids: Sequence[int], subtitle: str) -> Sheet:
    """All heads on the tokens `ids` (T,)."""
    ids = list(ids) or [tokenizer.start_id]
    findings = describe(measure(model, [ids]))
    weights = capture_attention(model, ids)[:, 0].cpu()
    return grid_picture(weights, [tokenizer.label(id) for id in ids], findings, subtitle)
