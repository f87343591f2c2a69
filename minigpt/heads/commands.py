"""What scripts/inspect_heads.py can be asked to do, each as a function that returns what to print.

options -> text
"""

import shlex
import sys
from argparse import Namespace

from minigpt import storage
from minigpt.checkpoint import Run, load_run
from minigpt.data import Corpus
from minigpt.errors import CONFIG, DATA, UserError
from minigpt.heads.arguments import name_of
from minigpt.heads.changing import Head
from minigpt.heads.compare import compare, match_lines
from minigpt.heads.files import write_files
from minigpt.heads.inspection import inspect, require_head
from minigpt.heads.marks import KINDS
from minigpt.heads.pruning import heads_with, pruned_run, require_new
from minigpt.heads.relation_lines import relation_lines
from minigpt.heads.report import as_json, report
from minigpt.loss import evaluate, mean_loss
from minigpt.saved_runs import next_name

ONLY_STORIES = "needs a run trained on stories; only there is known what is right"


def look(options: Namespace) -> str:
    """Everything about the heads of one run."""
    folder = options.out or options.run[0] / "heads"
    scores = options.csv or folder / "scores.csv"
    for place in (folder, scores.parent):
        storage.require_writable(place)
    seen = inspect(load_run(*options.run), options.text, options.head, options.fast)
    files = write_files(seen, folder, scores)
    if options.json:
        return as_json(seen, files)
    return report(seen, files, sys.stdout, name_of(*options.run))


def one_relation(options: Namespace) -> str:
    """All about one relation."""
    run = load_run(*options.run)
    if run.config.data.source != "stories":
        raise UserError(f"--relation: {ONLY_STORIES}", CONFIG)
    seen = inspect(run, fast=options.fast)
    if seen.judgement is None:
        advice = "leave --relation out to see where heads look"
        raise UserError(f"--relation: {seen.texts.note}; {advice}", DATA)
    if all(one.relation != options.relation for one in seen.judgement.evidence):
        what = f"{options.relation}: no story asks about it as far as the model can read"
        raise UserError(f"--relation: {what}; train with a longer model.context_length", DATA)
    return "\n".join(relation_lines(seen.judgement, options.relation))


def compare_two(options: Namespace) -> str:
    """Two runs' heads, matched by what they do."""
    first, second = (inspect(load_run(*found), fast=True) for found in options.compare)
    lines = match_lines(compare(first, second), first, second)
    runs = dict.fromkeys(name_of(*found) for found in options.compare)
    next_lines = [f"  python scripts/inspect_heads.py {shlex.quote(run)}" for run in runs]
    return "\n".join([*lines, "", "next: look at one of them", *next_lines])


def prune(options: Namespace) -> str:
    """Writes a run without some heads and tells what it lost."""
    run = load_run(*options.run)
    out = options.out or next_name(f"{run.run_dir.resolve().name}-pruned")
    require_new(out)
    storage.require_writable(out.parent)
    heads = heads_to_prune(run, options.prune)
    smaller = pruned_run(run, heads, out)
    names = ", ".join(f"L{layer}H{head}" for layer, head in heads)
    sizes = f"{run.model.num_parameters:,} -> {smaller.model.num_parameters:,} parameters"
    lines = [f"without {names}: {sizes}, {loss_words(run, smaller)}", f"made {out}"]
    scripts = ("generate.py", "inspect_heads.py")
    commands = [f"  python scripts/{name} {shlex.quote(str(out))}" for name in scripts]
    return "\n".join([*lines, "next: let it write, and look at the heads that are left", *commands])


def heads_to_prune(run: Run, wanted: list[Head] | str) -> list[Head]:
    """The heads that were named, or those with a role, which takes a look at all of them."""
    if isinstance(wanted, list):
        for head in wanted:
            require_head(run, head, "--prune")
        return wanted
    if wanted not in KINDS:
        what = f"{wanted!r} is neither heads such as L0H1,L2H3 nor a role"
        raise UserError(f"--prune: {what}; roles are {', '.join(KINDS)}", CONFIG)
    if run.config.data.source != "stories":
        raise UserError(f"--prune: a role {ONLY_STORIES}; name heads such as L0H1,L2H3", CONFIG)
    seen = inspect(run, fast=True)
    if seen.judgement is None:
        raise UserError(f"--prune: {seen.texts.note}; name heads such as L0H1,L2H3", DATA)
    return heads_with(wanted, seen.judgement.roles)


def loss_words(run: Run, smaller: Run) -> str:
    """The validation losses of both, or why there are none."""
    try:
        corpus = open_corpus(run)
    except UserError as error:
        return f"loss unknown: {error}"
    length = run.config.model.context_length
    before, after = (mean_loss(evaluate(r.model, corpus.val, length)) for r in (run, smaller))
    return f"validation loss {before:.4f} -> {after:.4f} nats per token ({after - before:+.4f})"


def open_corpus(run: Run) -> Corpus:
    if run.config.data.source == "stories":
        from minigpt.stories.corpus import open_stories

        return open_stories(run.config)
    return run.open_text()
