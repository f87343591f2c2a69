"""What scripts/inspect_heads.py can be asked to do, each as a function that returns what to print.

options -> text
"""

import shlex
import sys
from argparse import Namespace
from pathlib import Path

from minigpt.checkpoint import Run, load_run
from minigpt.data import Corpus
from minigpt.errors import CONFIG, DATA, UserError
from minigpt.heads.compare import compare, match_lines
from minigpt.heads.files import write_files
from minigpt.heads.inspection import inspect
from minigpt.heads.pruning import heads_named, pruned_run
from minigpt.heads.relation_lines import relation_lines
from minigpt.heads.report import as_json, report
from minigpt.loss import evaluate, mean_loss
from minigpt.saved_runs import next_name

ONLY_STORIES = "needs a run trained on stories and no --text; only there is known what is right"


def look(options: Namespace) -> str:
    """Everything about the heads of one run, or about one relation."""
    run = load_run(*options.run)
    if options.relation and (options.text is not None or run.config.data.source != "stories"):
        raise UserError(f"--relation: {ONLY_STORIES}", CONFIG)
    seen = inspect(run, options.text, options.head, options.fast)
    if options.relation:
        if seen.judgement is None:
            raise UserError(f"--relation: {seen.texts.note}", DATA)
        return "\n".join(relation_lines(seen.judgement, options.relation))
    folder = Path(options.out or run.run_dir / "heads")
    files = write_files(seen, folder, Path(options.csv) if options.csv else None)
    return as_json(seen, files) if options.json else report(seen, files, sys.stdout)


def compare_two(options: Namespace) -> str:
    """Two runs' heads, matched by what they do."""
    first, second = (inspect(load_run(*found), fast=True) for found in options.compare)
    lines = match_lines(compare(first, second), first, second)
    runs = dict.fromkeys(str(run_dir) for run_dir, _ in options.compare)
    next_lines = [f"  python scripts/inspect_heads.py {shlex.quote(run)}" for run in runs]
    return "\n".join([*lines, "", "next: look at one of them", *next_lines])


def prune(options: Namespace) -> str:
    """Writes a run without some heads and tells what it lost."""
    run = load_run(*options.run)
    seen = inspect(run, fast=True)
    roles = seen.judgement.roles if seen.judgement else []
    heads = heads_named(options.prune, seen.findings, roles)
    out = Path(options.out) if options.out else next_name(f"{run.run_dir.name}-pruned")
    smaller = pruned_run(run, heads, out)
    names = ", ".join(f"L{layer}H{head}" for layer, head in heads)
    sizes = f"{run.model.num_parameters:,} -> {smaller.model.num_parameters:,} parameters"
    lines = [f"without {names}: {sizes}, {loss_words(run, smaller)}", f"made {out}"]
    scripts = ("generate.py", "inspect_heads.py")
    commands = [f"  python scripts/{name} {shlex.quote(str(out))}" for name in scripts]
    return "\n".join([*lines, "next: let it write, and look at the heads that are left", *commands])


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
    from minigpt.text import open_text

    return open_text(run.config)
