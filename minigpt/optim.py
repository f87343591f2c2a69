"""How the weights move: learning rate schedules by name, AdamW, and Muon for the matrices.

Muon (Jordan et al. 2024) makes every direction of a matrix's update equally long. Its step size
is matched to AdamW's (Liu et al. 2025, "Muon is Scalable"), so one learning rate serves both.

gradients, progress of the training (0 to 1) -> new weights
"""

import inspect
import math
from collections import defaultdict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from minigpt.config import TrainConfig
from minigpt.distributed import like, whole

# ------------------------------------------------------------------------------ schedules

DECAY_SHARE = 0.2  # of a warmup-stable-decay schedule


def cosine(progress: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * progress))


def linear(progress: float) -> float:
    return 1 - progress


def warmup_stable_decay(progress: float) -> float:
    return min(1.0, (1 - progress) / DECAY_SHARE)


def constant(progress: float) -> float:
    return 1.0


SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": cosine,
    "linear": linear,
    "wsd": warmup_stable_decay,
    "constant": constant,
}


def learning_rate(config: TrainConfig, step: int, progress: float) -> float:
    """The learning rate of `step`, when a share `progress` (0 to 1) of the training is done.

    It climbs over the warm-up, then falls by the schedule to `min_learning_rate`.
    """
    warmup = min(config.warmup_steps, config.max_steps // 2)
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    height = SCHEDULES[config.schedule](min(1.0, progress))
    low, high = config.min_learning_rate, config.learning_rate
    return low + (high - low) * height


# ------------------------------------------------------------------------------ optimisers


def spare_the_compiler() -> None:
    """Lets PyTorch's optimisers work without importing its compiler, a second of every start.

    They import it only to keep it from compiling these methods, which we never ask it to do. That
    holds for all optimisers of this process. In a PyTorch that is made otherwise, it changes
    nothing.
    """
    for name in ("add_param_group", "zero_grad", "state_dict", "load_state_dict"):
        method = getattr(torch.optim.Optimizer, name)
        plain = getattr(method, "__wrapped__", method)
        plain.__dynamo_disable = plain


class AdamW(torch.optim.AdamW):
    """PyTorch's AdamW, whose step does not import the compiler either."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


class Muon(torch.optim.Muon):
    """PyTorch's Muon, one product for all matrices of a shape, and in float32 unless told.

    PyTorch orthogonalises in bfloat16, which a processor without bfloat16 units computes some
    eighty times more slowly than float32. A matrix that is shared out among processes is put
    together for it.
    """

    precision = torch.float32  # of the orthogonalisation

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for parameters in by_shape.values():
                self.step_together(parameters, group)

    def step_together(self, parameters: list[Tensor], group: dict) -> None:
        """Moves parameters of one shape."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        averages = [self.momentum_of(parameter) for parameter in parameters]
        torch._foreach_lerp_(averages, gradients, 1 - group["momentum"])
        nesterov = torch._foreach_lerp(gradients, averages, group["momentum"])
        stacked = torch.stack([whole(matrix) for matrix in nesterov]).to(self.precision)
        updates = orthogonalised(stacked, group["ns_coefficients"], group["ns_steps"]).float()
        rate = group["lr"] * 0.2 * max(parameters[0].shape) ** 0.5
        torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        shares = [like(update, p) for update, p in zip(updates, parameters, strict=True)]
        torch._foreach_add_(parameters, shares, alpha=-rate)

    def momentum_of(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        return state["momentum_buffer"]


def orthogonalised(
    matrices: Tensor, coefficients: tuple[float, float, float], num_iterations: int
) -> Tensor:
    """Pulls all singular values near 1 by Newton–Schulz iteration: (N, rows, columns) -> same."""
    a, b, c = coefficients
    x = matrices / matrices.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    tall = x.size(-2) > x.size(-1)
    x = x.mT if tall else x
    for _ in range(num_iterations):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


def build_optimizers(
    model: nn.Module, config: TrainConfig, precision: torch.dtype = torch.float32
) -> list[torch.optim.Optimizer]:
    """The optimisers that together move every weight; weight decay is for matrices only.

    With `muon`, the matrices inside the blocks are Muon's; embeddings, head, norms and biases
    are always AdamW's. A training in bfloat16 orthogonalises in it, too.
    """
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    inner = [w for name, w in named if w.ndim == 2 and ".blocks." in f".{name}"]
    outer = [w for name, w in named if w.ndim == 2 and ".blocks." not in f".{name}"]
    vectors = [w for _, w in named if w.ndim != 2]
    with_muon = config.optimizer == "muon"
    groups = [
        {"params": outer if with_muon else inner + outer, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    betas = (config.beta1, config.beta2)
    spare_the_compiler()
    adamw = AdamW(groups, lr=config.learning_rate, betas=betas, fused=True)
    if not with_muon:
        return [adamw]
    decay = config.weight_decay
    muon = Muon(inner, config.learning_rate, decay, adjust_lr_fn="match_rms_adamw")
    if precision == torch.bfloat16:
        muon.precision = precision
    return [adamw, muon]
