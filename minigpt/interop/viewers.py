"""Attention as other tools take it.

bertviz draws heads from a list of layers (1, H, T, T) and the tokens' texts.

run, text -> what the tool takes
"""

from torch import Tensor

from minigpt.checkpoint import Run
from minigpt.errors import DATA, UserError
from minigpt.heads.capture import capture_attention
from minigpt.heads.texts import given_text


def for_bertviz(run: Run, text: str) -> tuple[tuple[Tensor, ...], list[str]]:
    """The attention of each layer (1, H, T, T), and T tokens: as `head_view(*…)` takes them.

    Raises UserError where a head was pruned or never was, since bertviz draws all layers alike.
    """
    model = run.config.model
    for layer in range(model.num_layers):
        if len(model.heads_in(layer)) < model.num_heads:
            what = f"layer {layer} has fewer heads than {model.num_heads}"
            advice = "leave it out with include_layers, or train with model.first_layer_heads=None"
            raise UserError(f"{run.run_dir}: {what}, and bertviz draws all alike; {advice}", DATA)
    ids = given_text(run, text).ids[0]
    weights = capture_attention(run.model, ids).cpu()  # (L, 1, H, T, T)
    return tuple(weights), [run.tokenizer.label(id) for id in ids]
