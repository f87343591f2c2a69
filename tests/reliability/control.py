"""What anyone has: a plain training loop, `torch.save` of a state dict, text read as it comes.

Not part of minigpt and no example to follow: RELIABILITY.md holds minigpt against it. It is the one
file in the repository that may call `torch.save` and `torch.load`.
"""

import io
import os
from pathlib import Path

import torch
from torch import nn

CONTEXT, BATCH = 8, 2


class Control:
    """A small next-byte model with dropout, trained the usual way."""

    def __init__(self, text: str, seed: int = 1337, device: str = "cpu") -> None:
        torch.manual_seed(seed)
        self.data = torch.tensor(list(text.encode()), device=device)
        self.model = nn.Sequential(
            nn.Embedding(256, 4), nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 256)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.step = 0

    def train_step(self) -> float:
        starts = torch.randint(len(self.data) - CONTEXT - 1, (BATCH,))
        rows = torch.stack([self.data[start : start + CONTEXT + 1] for start in starts])
        logits = self.model(rows[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def save(self, path: Path | io.BytesIO) -> None:
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state | {"step": self.step}, path)

    def load(self, path: Path | io.BytesIO) -> None:
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]

    def run(self, path: Path, steps: int, every: int) -> None:
        if os.path.exists(path):
            self.load(path)
        while self.step < steps:
            self.train_step()
            if self.step % every == 0:
                self.save(path)


def settings(arguments: list[str]) -> dict[str, object]:
    """`key=value` as nanoGPT-like scripts read them: known keys, values by Python's own rules."""
    import ast

    values: dict[str, object] = {"max_steps": 60, "learning_rate": 0.01, "device": "cpu"}
    for argument in arguments:
        key, value = argument.split("=")
        if key not in values:
            raise ValueError(f"Unknown config key: {key}")
        try:
            values[key] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            values[key] = value
    return values
