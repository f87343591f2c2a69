"""A smaller run without some heads: their rows and columns are left out, nothing is retrained.

run, heads -> a new run directory
"""

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
from minigpt.heads.findings import Finding
from minigpt.heads.roles import Role
from minigpt.model import GPT
from minigpt.saved_runs import checkpoints
from minigpt.weights import load_weights, weights_of


def heads_named(wanted: str, findings: Sequence[Finding], roles: Sequence[Role]) -> list[Head]:
    """The heads of `L0H1,L2H3`, or all that have a role such as `broad` or `unlabelled`.

    Raises UserError where there is none.
    """
    names = {finding.name: (finding.layer, finding.head) for finding in findings}
    asked = [name.strip().upper() for name in wanted.split(",")]
    if all(name in names for name in asked):
        return [names[name] for name in asked]
    kinds = {role.name: {label.kind for label in role.labels} or {"unlabelled"} for role in roles}
    found = [names[name] for name, kind in kinds.items() if wanted in kind]
    if not found:
        known = ", ".join(sorted(set().union(*kinds.values()))) or "none, it knows no stories"
        message = f"--prune: {wanted!r} is neither heads such as L0H1,L2H3 nor a role of this run"
        raise UserError(f"{message}; its roles: {known}", CONFIG)
    return found


def pruned_run(run: Run, heads: Sequence[Head], run_dir: Path) -> Run:
    """Writes a run without these heads; raises UserError where a layer would have none left."""
    config = pruned_config(run.config, heads, run_dir)
    model = GPT(config.model, run.model.vocab_size)
    load_weights(model, sliced(run.model, config))
    if checkpoints(run_dir):
        raise UserError(f"{run_dir}: already holds a run; choose another --out", CONFIG)
    storage.write_text(run_dir / "config.yaml", dump_yaml(config))
    run.tokenizer.save(run_dir / "tokenizer.json")
    state = replace(run.state, val_loss=None, best_val_loss=None, best_step=run.state.step)
    checkpoint.save(run_dir, state, model, [])
    return Run(run_dir, config, run.tokenizer, model, state)


def pruned_config(config: Config, heads: Sequence[Head], run_dir: Path) -> Config:
    names = sorted({*config.model.pruned, *(f"L{layer}H{head}" for layer, head in heads)})
    values = config.model_dump()
    values["model"]["pruned"] = names
    values["run_dir"] = str(run_dir)
    try:
        return Config.model_validate(values)
    except ValueError:
        advice = "name fewer heads, and leave each layer at least one"
        raise UserError(
            f"--prune: {', '.join(names)} are all heads of a layer; {advice}", CONFIG
        ) from None


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
