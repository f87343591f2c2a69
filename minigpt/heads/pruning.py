"""A smaller run without some heads: their rows and columns are left out, nothing is retrained.

run, heads -> a new run directory
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from minigpt import checkpoint, storage
from minigpt.checkpoint import Run
from minigpt.command_line import dump_yaml
from minigpt.config import Config
from minigpt.errors import CONFIG, UserError
from minigpt.heads.changing import Head
from minigpt.heads.marks import UNLABELLED
from minigpt.heads.roles import Role
from minigpt.model import GPT
from minigpt.weights import load_weights, weights_of


def heads_with(kind: str, roles: Sequence[Role]) -> list[Head]:
    """All heads that have a role such as `broad` or `unlabelled`; raises UserError if none has."""
    kinds = {
        (role.layer, role.head): {label.kind for label in role.labels} or {UNLABELLED}
        for role in roles
    }
    found = [head for head, has in kinds.items() if kind in has]
    if not found:
        known = ", ".join(sorted(set().union(*kinds.values())))
        raise UserError(f"--prune: no head is {kind!r}; roles of this run: {known}", CONFIG)
    return found


def pruned_run(run: Run, heads: Sequence[Head], run_dir: Path) -> Run:
    """Writes a run without these heads, whole or not at all; raises UserError.

    That is where a layer would have none left, or where something is in the place of the new run.
    """
    config = pruned_config(run.config, heads, run_dir)
    model = GPT(config.model, run.model.vocab_size)
    load_weights(model, sliced(run.model, config))
    state = replace(run.state, val_loss=None, best_val_loss=None, best_step=run.state.step)
    require_new(run_dir)
    storage.remove_leftovers(run_dir.parent, run_dir.name)
    with storage.new_folder(run_dir) as folder:
        storage.write_text(folder / "config.yaml", dump_yaml(config))
        run.tokenizer.save(folder / "tokenizer.json")
        checkpoint.save(folder, state, model, [])
    return Run(run_dir, config, run.tokenizer, model, state)


def require_new(run_dir: Path) -> None:
    """Raises UserError where there is more than an empty folder."""
    if os.path.lexists(run_dir) and not (run_dir.is_dir() and not any(run_dir.iterdir())):
        raise UserError(f"{run_dir}: is there already; give --out a new name", CONFIG)


def pruned_config(config: Config, heads: Sequence[Head], run_dir: Path) -> Config:
    for layer in range(config.model.num_layers):
        there = {(layer, head) for head in config.model.heads_in(layer)}
        if there <= set(heads):
            all_of_them = ", ".join(f"L{layer}H{head}" for _, head in sorted(there))
            what = f"layer {layer} has no heads but {all_of_them}"
            advice = "name fewer, and leave each layer at least one"
            raise UserError(f"--prune: {what}; {advice}", CONFIG)
    names = {*config.model.pruned, *(f"L{layer}H{head}" for layer, head in heads)}
    values = config.model_dump()
    values["model"]["pruned"] = sorted(names)
    values["run_dir"] = str(run_dir)
    return Config.model_validate(values)


def sliced(model: GPT, config: Config) -> dict[str, Tensor]:
    """The weights of the heads that stay."""
    weights = dict(weights_of(model))
    for layer in range(model.config.num_layers):
        stay = set(config.model.heads_in(layer))
        places = [at for at, head in enumerate(model.config.heads_in(layer)) if head in stay]
        head_dim = config.model.head_dim
        rows = torch.from_numpy(np.add.outer(np.array(places) * head_dim, np.arange(head_dim)))
        for name in ("W_query", "W_key", "W_value"):
            for kind in ("weight", "bias"):
                key = f"blocks.{layer}.attention.{name}.{kind}"
                if key in weights:
                    weights[key] = weights[key][rows.flatten()]
        key = f"blocks.{layer}.attention.out_proj.weight"
        weights[key] = weights[key][:, rows.flatten()]
    return weights
