"""Writing: score every token as the next one, draw one, read it, and again.

`Window` is what the model sees of a text, `Writer` makes text of tokens, `generate` and `stream`
use both. Each sample has random numbers of its own, so that it is the same text alone or beside
others. Scores are computed in float32; where a draw hangs on how they were rounded, they are
computed again in float64. So a text is the same with and without a cache, on every device.

prompt -> ids -> logits -> ids -> text
"""

import contextlib
import copy
import random
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from minigpt.cache import KVCache
from minigpt.config import SampleConfig
from minigpt.decoding import Decoder
from minigpt.errors import NON_FINITE, UserError
from minigpt.model import GPT
from minigpt.sampling import Choice
from minigpt.tokenizer import StreamDecoder, Tokenizer

SAMPLES_AT_ONCE = 64
ROUNDING = 5e-5  # of the largest score: over ten times what float32 was off, as measured

# ------------------------------------------------------------------------------ what the model sees


def window_start(length: int, context_length: int) -> int:
    """Where the model begins to read a text of `length` tokens.

    A full context drops its older half at once. So the start stays where it is for half a
    context of new tokens, and what a cache remembers stays true.
    """
    half = (context_length + 1) // 2
    overflow = max(length - context_length, 0)
    return -(-overflow // half) * half


class Window:
    """The tokens (B, T) that the model sees of B equally long texts."""

    def __init__(self, model: GPT, ids: Tensor, max_new_tokens: int) -> None:
        self.model = model
        self.decoder = Decoder(model) if decodes(model) else None
        self.capacity = min(ids.size(1) + max_new_tokens, model.config.context_length)
        self.ids, self.start, self.length = ids[:, :0], 0, 0
        self.forget()
        self.append(ids)

    def forget(self) -> None:
        self.cache = KVCache(self.model.config.num_layers, self.capacity)

    def append(self, ids: Tensor) -> None:
        """Takes new tokens (B, T) in and drops those that no longer fit."""
        self.length += ids.size(1)
        start = window_start(self.length, self.model.config.context_length)
        self.ids = torch.cat([self.ids, ids], dim=1)[:, start - self.start :]
        if start != self.start:
            self.start = start
            self.forget()

    def expand(self, batch: int) -> None:
        """Goes on with `batch` continuations of the one text so far."""
        self.ids = self.ids.expand(batch, -1)
        self.cache.expand(batch)

    def logits(self) -> Tensor:
        """The scores (B, V) of the next token, as float64 on the CPU, where it is drawn."""
        new = self.ids[:, self.cache.length :]
        if self.decoder is not None and self.cache.length and new.size(1) == 1:
            return self.decoder(new, self.cache).double()
        return self.model(new, self.cache)[:, -1].cpu().double()


def decodes(model: GPT) -> bool:
    """Whether the decoder may stand for the model: on a CPU, where nobody looks in by hooks."""
    modules = list(model.modules())
    hooked = any(module._forward_hooks or module._forward_pre_hooks for module in modules)
    return device_of(model).type == "cpu" and not hooked


class Exact:
    """The model in float64 on the CPU, copied when it is first asked."""

    def __init__(self, model: GPT) -> None:
        self.model = model
        self.copy: GPT | None = None

    def logits(self, ids: Tensor) -> Tensor:
        """The scores of the next token: (B, T) -> (B, V)."""
        if self.copy is None:
            self.copy = copy.deepcopy(self.model).to("cpu", torch.float64)
        return self.copy(ids.cpu())[:, -1]


# ------------------------------------------------------------------------------ from tokens to text


class Writer:
    """One sample's tokens as text to show: whole characters, and nothing of a stop string."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] | None) -> None:
        self.decoder = StreamDecoder(tokenizer)
        self.stop = [string for string in stop or () if string]
        self.held = ""  # may yet turn out to begin a stop string
        self.stopped = False

    def feed(self, id: int) -> str:
        """The text that a token adds, as far as it is certain; nothing after a stop string."""
        return "" if self.stopped else self.release(self.decoder.feed(id))

    def finish(self) -> str:
        """What is left when no more tokens come."""
        if self.stopped:
            return ""
        return self.release(self.decoder.finish()) + self.held

    def release(self, text: str) -> str:
        text = self.held + text
        start = find_stop(text, self.stop)
        self.stopped = start is not None
        if start is None:
            start = len(text) - beginning_of_stop(text, self.stop)
        self.held = text[start:]
        return text[:start]


def find_stop(text: str, stop: Sequence[str]) -> int | None:
    """Where the stop string that is complete first begins; of two, the longer one."""
    found = [(text.index(s) + len(s), text.index(s)) for s in stop if s in text]
    return min(found)[1] if found else None


def beginning_of_stop(text: str, stop: Sequence[str]) -> int:
    """How many characters at the text's end may begin a stop string."""
    longest = max(map(len, stop), default=1) - 1
    lengths = range(min(longest, len(text)), 0, -1)
    return next((n for n in lengths if any(s.startswith(text[-n:]) for s in stop)), 0)


# ------------------------------------------------------------------------------ from prompt to text


def never() -> bool:
    return False


def generate(
    model: GPT,
    tokenizer: Tokenizer,
    prompt: str,
    sampling: SampleConfig,
    seed: int,
    *,
    cached: bool = True,
    interrupted: Callable[[], bool] = never,
) -> list[str]:
    """What the model writes after the prompt, `sampling.num_samples` times; without the prompt.

    An empty prompt starts from the tokenizer's `start_id`. Ends early, with the text so far, once
    `interrupted()` is true; it is asked after each token. Raises UserError when the tokenizer
    can't write the prompt.
    """
    texts = []
    for first in range(0, sampling.num_samples, SAMPLES_AT_ONCE):
        samples = range(first, min(first + SAMPLES_AT_ONCE, sampling.num_samples))
        pieces = write(model, tokenizer, prompt, sampling, seed, samples, cached, interrupted)
        texts += ["".join(parts) for parts in zip(*pieces, strict=True)]
    return texts


def stream(
    model: GPT,
    tokenizer: Tokenizer,
    prompt: str,
    sampling: SampleConfig,
    seed: int,
    sample: int = 0,
    *,
    interrupted: Callable[[], bool] = never,
) -> Iterator[str]:
    """The text of one sample, the same as in `generate`, in pieces of whole characters."""
    pieces = write(model, tokenizer, prompt, sampling, seed, [sample], True, interrupted)
    yield from filter(None, (piece for (piece,) in pieces))


@torch.inference_mode()
def write(
    model: GPT,
    tokenizer: Tokenizer,
    prompt: str,
    sampling: SampleConfig,
    seed: int,
    samples: Sequence[int],
    cached: bool,
    interrupted: Callable[[], bool],
) -> Iterator[list[str]]:
    """After each token the new piece of every sample's text, at last what was held back."""
    ids = torch.tensor([tokenizer.encode(prompt) or [tokenizer.start_id]])
    writers = [Writer(tokenizer, sampling.stop) for _ in samples]
    with evaluating(model):
        for chosen in next_ids(model, ids, sampling, seed, samples, cached):
            yield [writer.feed(id) for writer, id in zip(writers, chosen, strict=True)]
            if interrupted() or all(writer.stopped for writer in writers):
                break
    yield [writer.finish() for writer in writers]


def next_ids(
    model: GPT, ids: Tensor, sampling: SampleConfig, seed: int, samples: Sequence[int], cached: bool
) -> Iterator[list[int]]:
    """The next token of every sample, again and again; `ids` (1, T) is the text before."""
    streams = [random.Random(f"{seed}/{sample}") for sample in samples]
    seen = torch.zeros(1, model.vocab_size, dtype=torch.bool).scatter(1, ids, True)
    seen = seen.repeat(len(samples), 1)
    window, exact = Window(model, ids.to(device_of(model)), sampling.max_new_tokens), Exact(model)
    for count in range(sampling.max_new_tokens):
        logits = window.logits().expand(len(samples), -1)
        if count == 0:
            require_numbers(logits)
            window.expand(len(samples))
        uniforms = torch.tensor([stream.random() for stream in streams], dtype=torch.float64)
        choice = Choice(logits, seen, sampling, uniforms)
        again = torch.ones(len(samples), dtype=torch.bool)
        if cached:
            again = choice.unsure(ROUNDING * logits.abs().amax(-1, True))
        if again.any():
            logits = logits.clone()
            logits[again] = exact.logits(window.ids[again.to(window.ids.device)])
            choice = Choice(logits, seen, sampling, uniforms)
        chosen = choice.ids
        yield chosen.tolist()
        if sampling.repetition_penalty != 1:
            seen.scatter_(1, chosen[:, None], True)
        window.append(chosen[:, None].to(window.ids))


def require_numbers(logits: Tensor) -> None:
    if not logits.isfinite().all():
        advice = "its weights are damaged; use another checkpoint"
        raise UserError(f"model: the scores of the next token are not finite; {advice}", NON_FINITE)


def device_of(model: GPT) -> torch.device:
    return model.token_embedding.weight.device


@contextlib.contextmanager
def evaluating(model: GPT) -> Iterator[None]:
    """The model without dropout for a while."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
