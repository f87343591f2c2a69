"""Lets a trained model write: python scripts/generate.py [RUN] [--prompt TEXT] [--help]"""

import contextlib
import functools
import io
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator

from minigpt.errors import UserError, run_command
from minigpt.generate_arguments import parse, read_config, read_prompt

DIVIDER = "---------------"


def main(arguments: list[str]) -> None:
    options = parse(arguments)
    read_config(options)  # tells of mistakes before PyTorch is there, which takes seconds
    prompt = read_prompt(options.prompt) if options.prompt is not None else None
    escape_what_cannot_be_shown()
    from minigpt.checkpoint import load_run, newest_run
    from minigpt.device import choose_device
    from minigpt.generate import exact, generate, stream

    run = load_run(options.run or newest_run(), options.checkpoint, choose_device(options.device))
    if options.run is None:
        print(f"{run.run_dir}, step {run.step}", file=sys.stderr)
    config = read_config(options, run.run_dir / "config.yaml")
    model, sampling = exact(run.model), config.sample
    prompt = sampling.prompt if prompt is None else prompt
    write = functools.partial(stream, model, run.tokenizer, sampling=sampling, seed=config.seed)
    if options.interactive:
        converse(write)
    elif options.stream or (options.stream is None and watched(sampling.num_samples)):
        show_all(prompt, (write(prompt, sample=sample) for sample in range(sampling.num_samples)))
    else:
        texts = generate(model, run.tokenizer, prompt, sampling, config.seed)
        show_all(prompt, ([text] for text in texts))


def escape_what_cannot_be_shown() -> None:
    for console in (sys.stdin, sys.stdout):
        if isinstance(console, io.TextIOWrapper):
            console.reconfigure(errors="backslashreplace")


def watched(num_samples: int) -> bool:
    return num_samples == 1 and sys.stdout.isatty()


def converse(write: Callable[..., Iterator[str]]) -> None:
    """Answers prompts until an empty line or the end of the input."""
    with contextlib.suppress(EOFError):
        for turn in itertools.count():
            prompt = input("> " if sys.stdin.isatty() else "")
            if not prompt:
                return
            try:
                show(prompt, write(prompt, sample=turn))
            except UserError as error:
                print(f"error: {error}", file=sys.stderr)


def show_all(prompt: str, texts: Iterable[Iterable[str]]) -> None:
    for number, pieces in enumerate(texts):
        if number:
            print(DIVIDER)
        show(prompt, pieces)


def show(prompt: str, pieces: Iterable[str]) -> None:
    """Prints a text piece by piece; a prompt that can't be read fails before it is printed."""
    pieces = iter(pieces)
    first = next(pieces, "")
    for piece in itertools.chain([prompt + first], pieces):
        print(piece, end="", flush=True)
    print()


if __name__ == "__main__":
    run_command(main)
