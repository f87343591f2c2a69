"""Attention by hand: every step of two heads reading "the dog fetched the ball", with numbers."""

import os
import sys
from typing import TYPE_CHECKING

from minigpt.errors import run_command
from minigpt.options import Parser

if TYPE_CHECKING:
    from torch import Tensor

WORDS = ["the", "dog", "fetched", "the", "ball"]
HEAD_DIM, NUM_HEADS = 3, 2
COLOURS = ("\033[38;5;33m", "\033[38;5;208m")  # blue and orange: one for each head
PLAIN = "\033[0m"


def main(arguments: list[str]) -> None:
    parser = Parser(description="Prints every step of attention, with numbers.")
    parser.add_argument("--color", choices=["auto", "always", "never"], default="auto")
    asked = parser.parse_args(arguments)
    import torch

    from minigpt.attention import MultiHeadAttention, MultiHeadAttentionWrapper, causal_mask

    show = Page(asked.color == "always" or (asked.color == "auto" and wants_colour()))
    torch.manual_seed(2)
    inputs = torch.randn(5, 6, dtype=torch.float64)
    wrapper = MultiHeadAttentionWrapper(6, HEAD_DIM, NUM_HEADS).double().requires_grad_(False)
    batched = MultiHeadAttention.from_heads(wrapper).requires_grad_(False)

    show.step("1. The words", "Each word is a row of 6 numbers; here they are drawn at random.")
    show.table("inputs", inputs)

    show.step(
        "2. Projections",
        "Three matrices make of each row a query (what the word looks for), a key (what it can\n"
        "be found by) and a value (what it tells). Columns 1 to 3 are head 0's, 4 to 6 head 1's.",
    )
    queries, keys, values = (f(inputs) for f in (batched.W_query, batched.W_key, batched.W_value))
    for name, matrix in {"queries": queries, "keys": keys, "values": values}.items():
        show.table(name, matrix, columns_per_head=HEAD_DIM)

    show.step(
        "3. Split into heads",
        "The same numbers, in another order: view (5, 6) as (5, 2, 3), transpose to (2, 5, 3).",
    )
    queries, keys, values = (batched.split_heads(x) for x in (queries, keys, values))
    show.heads("queries", queries)

    show.step(
        "4. Scores",
        "Each query is multiplied with each key and summed; the more alike, the higher. Dividing\n"
        "by √3 keeps the sums as large as single numbers, however wide a head is.",
    )
    scores = queries @ keys.mT / HEAD_DIM**0.5
    show.heads("scores", scores, WORDS)

    show.step("5. Mask", "No word may look at a later one: those scores become minus infinity.")
    masked = scores + causal_mask(scores)
    show.heads("masked", masked, WORDS)

    show.step("6. Weights", "Softmax makes of each row shares that add up to 1.")
    weights = masked.softmax(dim=-1)
    show.heads("weights", weights, WORDS)

    show.step("7. Context", "Each word takes the values of the words it looks at, by these shares.")
    context = weights @ values
    show.heads("context", context)

    show.step("8. Recombined", "The heads' results side by side again: (2, 5, 3) back to (5, 6).")
    joined = batched.join_heads(context)
    show.table("joined", joined, columns_per_head=HEAD_DIM)
    outputs = batched.out_proj(joined)
    show.step("9. Output", "One last matrix lets the heads' findings mix.")
    show.table("outputs", outputs)

    step = "10. Three ways, one result"
    show.step(step, "Heads in series, heads at once, and the steps above, in 64-bit numbers:")
    for name, other in {"in series": wrapper(inputs), "at once": batched(inputs)}.items():
        difference = (other - outputs).abs().max().item()
        show.line(f"largest difference from the heads {name}: {difference:.1e}")
        assert difference < 1e-12
    show.line(
        "\nThe same in code: minigpt/attention.py. Next: train a model whose heads have learned"
    )
    show.line("  python scripts/train.py")


def wants_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


class Page:
    """Prints tables, each head in its colour."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def line(self, text: str) -> None:
        print(text)

    def step(self, title: str, why: str) -> None:
        print(f"\n{title}\n{'-' * len(title)}\n{why}")

    def table(self, name: str, matrix: "Tensor", columns_per_head: int | None = None) -> None:
        print(f"\n{name} {tuple(matrix.shape)}")
        for word, row in zip(WORDS, matrix.tolist(), strict=True):
            heads = [i // columns_per_head if columns_per_head else None for i in range(len(row))]
            print(f"  {word:>8}" + "".join(map(self.number, row, heads)))

    def heads(self, name: str, tensor: "Tensor", columns: list[str] | None = None) -> None:
        for head, matrix in enumerate(tensor):
            label = f"{name} of head {head} {tuple(matrix.shape)}"
            print(f"\n{self.painted(label, head)}")
            if columns:
                print(" " * 10 + "".join(f"{word:>9}" for word in columns))
            for word, row in zip(WORDS, matrix.tolist(), strict=True):
                print(f"  {word:>8}" + "".join(self.number(value, head) for value in row))

    def number(self, value: float, head: int | None) -> str:
        return self.painted(f"{value:9.3f}", head)

    def painted(self, text: str, head: int | None) -> str:
        return text if head is None or not self.colour else f"{COLOURS[head]}{text}{PLAIN}"


if __name__ == "__main__":
    run_command(main)
