"""Averaged weights: a running mean over the steps, often a little better than the last step.

Source: Polyak & Juditsky 1992; as an exponential mean, e.g. Izmailov et al. 2018.

weights after each step -> weights to evaluate, sample from and keep
"""

import contextlib
from collections.abc import Iterator

from torch import Tensor

from minigpt.model import GPT
from minigpt.weights import load_weights, weights_of


class AveragedWeights:
    """An exponential mean of a model's weights; `decay` is the share that stays at each step."""

    def __init__(self, model: GPT, decay: float) -> None:
        self.decay = decay
        self.tensors = copies(model)

    def update(self, model: GPT) -> None:
        for name, weight in weights_of(model).items():
            self.tensors[name].lerp_(weight, 1 - self.decay)

    @contextlib.contextmanager
    def inside(self, model: GPT) -> Iterator[None]:
        """Puts the averaged weights into the model for a while."""
        training = copies(model)
        load_weights(model, self.tensors)
        try:
            yield
        finally:
            load_weights(model, training)


def copies(model: GPT) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in weights_of(model).items()}
