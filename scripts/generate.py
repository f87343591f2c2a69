"""Lets a trained model write: python scripts/generate.py [RUN] [--prompt TEXT] [--help]"""

import sys
from collections.abc import Iterator
from pathlib import Path

from minigpt.console import converse, show_all
from minigpt.errors import run_command
from minigpt.generate_arguments import parse, read_config, read_prompt
from minigpt.saved_runs import find_checkpoint, newest_run


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    read_config(options)  # tells of mistakes before PyTorch is there, which takes seconds
    prompt = read_prompt(options.prompt) if options.prompt is not None else None
    run_dir = Path(options.run or newest_run())
    find_checkpoint(run_dir, options.checkpoint)
    from minigpt.checkpoint import load_run
    from minigpt.device import choose_device
    from minigpt.generation import generate, stream

    run = load_run(run_dir, options.checkpoint, choose_device(options.device))
    if options.run is None:
        print(f"{run.run_dir}, step {run.step}", file=sys.stderr)
    config = read_config(options, run.run_dir / "config.yaml")
    model, tokenizer, sampling = run.model, run.tokenizer, config.sample
    prompt = sampling.prompt if prompt is None else prompt

    def opened(prompt: str) -> str:
        """Every story that the model has learned from came after a line break."""
        return "\n" + prompt.removeprefix("\n") if config.data.source == "stories" else prompt

    def write(prompt: str, sample: int) -> Iterator[str]:
        return stream(model, tokenizer, opened(prompt), sampling, config.seed, sample)

    watched = sampling.num_samples == 1 and sys.stdout.isatty()
    if options.interactive:
        converse(write)
    elif options.stream or (options.stream is None and watched):
        show_all(prompt, (write(prompt, sample) for sample in range(sampling.num_samples)))
    else:
        texts = generate(model, tokenizer, opened(prompt), sampling, config.seed)
        show_all(prompt, ([text] for text in texts))


if __name__ == "__main__":
    run_command(main)
