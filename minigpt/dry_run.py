"""What a training would be, without training: sizes, memory, and every setting.

config, corpus -> text
"""

from minigpt.command_line import dump_yaml
from minigpt.config import Config
from minigpt.data import Corpus

BYTES = 4  # of a float32 number
COPIES = 4  # of each weight while it trains: itself, its gradient, two running means


def describe(config: Config, corpus: Corpus) -> str:
    """Several lines to print; memory is an estimate, the other numbers are exact."""
    train, vocab_size = config.train, corpus.tokenizer.vocab_size
    parameters = config.model.num_parameters(vocab_size)
    tokens_per_step = train.batch_size * train.accumulate * config.model.context_length
    memory = BYTES * (COPIES * parameters + activation_count(config, vocab_size))
    lines = [
        f"corpus            {corpus.name}: {len(corpus.train.ids):,} tokens to train on, "
        f"{len(corpus.val.ids):,} to validate",
        f"vocabulary        {vocab_size:,} tokens ({corpus.tokenizer.kind})",
        f"parameters        {parameters:,}",
        f"memory            about {memory / 2**20:,.0f} MiB",
        f"tokens per step   {tokens_per_step:,}",
        f"steps per epoch   {len(corpus.train.ids) / tokens_per_step:,.1f}",
        f"training          {train.max_steps:,} steps, {train.max_steps * tokens_per_step:,} tokens"
        + (f", at most {train.max_minutes:g} minutes" if train.max_minutes else ""),
    ]
    return "\n".join(lines) + "\n\n" + dump_yaml(config).rstrip()


def activation_count(config: Config, vocab_size: int) -> int:
    """Numbers kept from the forward pass for the backward pass of one micro-batch, roughly."""
    model = config.model
    per_layer = 10 * model.embed_dim + 3 * model.feed_forward_dim
    per_token = model.num_layers * per_layer + 3 * vocab_size
    return config.train.batch_size * model.context_length * per_token
