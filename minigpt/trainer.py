"""Training: draw a batch, measure the loss, move the weights; now and then evaluate and save.

Every step is a pure function of the weights and of (seed, step), so a run that was stopped and
resumed ends with the same bytes as one that never was.

config, corpus -> run directory
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minigpt import checkpoint, distributed, run_directory, starting_point, storage
from minigpt.averaging import AveragedWeights
from minigpt.checkpoint import TrainingState
from minigpt.choosing import using_threads, with_choices
from minigpt.config import Config
from minigpt.data import Corpus
from minigpt.device import (
    autocast,
    choose_device,
    choose_precision,
    compiled,
    keep_memory,
)
from minigpt.errors import NON_FINITE, UserError
from minigpt.generation import generate
from minigpt.interrupts import Interrupts, Stopped
from minigpt.loss import NOTHING, bits_per_byte, evaluate, mean_loss, token_losses
from minigpt.model import GPT
from minigpt.optim import build_optimizers, learning_rate
from minigpt.training_log import Silence, TrainingLog
from minigpt.weights import load_optimizers, load_weights, read_tensors, unsharded

Observer = Callable[[int, GPT], None]


class Trainer:
    """One training run: what it needs, and the story of `run`."""

    def __init__(
        self,
        config: Config,
        corpus: Corpus,
        run_dir: Path,
        resume_from: Path | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.sharded = config.shard and distributed.world_size() > 1
        self.observers = observers if distributed.is_first() and not self.sharded else ()
        self.config, self.corpus, self.run_dir = config, corpus, run_dir
        self.device = choose_device(distributed.own_device(config.device))
        self.precision, warning = choose_precision(config.precision, self.device)
        keep_memory()
        torch.manual_seed(config.seed)
        self.model = GPT(config.model, corpus.tokenizer.vocab_size)
        if self.sharded:
            distributed.shared_out(self.model, self.model.blocks, self.device.type)
        self.model.to(self.device)
        if self.device.type == "cpu" and self.precision == torch.bfloat16:
            self.model.write_out_attention()  # PyTorch's kernel has a slow way back there
        if config.init_from is not None and resume_from is None:
            load_weights(self.model, checkpoint.starting_weights(config), config.init_from)
        self.optimizers = build_optimizers(self.model, config.train, self.precision)
        decay = config.train.ema
        self.average = None if decay is None else AveragedWeights(self.model, decay)
        self.state = TrainingState(corpus=corpus.fingerprint)
        if resume_from is not None:
            self.restore(resume_from)
        forward = distributed.with_common_gradients(self.model)
        self.forward, slow = compiled(forward, config.compile, self.device)
        first, last = self.state.step, config.train.max_steps
        self.log = TrainingLog(run_dir, first, last) if distributed.is_first() else Silence()
        self.log.say(self.description())
        for message in filter(None, (warning, slow)):
            self.log.say(f"warning: {message}")
        self.saved_step = self.state.step if resume_from else None
        self.train_loss = self.log.train_loss
        self.training_seconds = 0.0
        self.interrupted = Interrupts()

    def description(self) -> str:
        precision = str(self.precision).removeprefix("torch.")
        threads = torch.get_num_threads()
        where = f"{self.device}, {precision}, {threads} thread{'s' if threads > 1 else ''}"
        if distributed.world_size() > 1:
            where += f", {distributed.world_size()} processes"
        tokens = f"{len(self.corpus.train.ids):,} tokens of {self.corpus.name}"
        return f"{self.run_dir}: {self.model.num_parameters:,} parameters, {tokens}, {where}"

    # -------------------------------------------------------------------------- the story

    def run(self) -> int:
        """Trains to the end, or to a signal; returns the exit code."""
        self.model.train()
        with contextlib.closing(self.log), self.interrupted:
            with contextlib.suppress(Stopped):
                self.make_up_for_a_stop()
                while not self.finished():
                    self.stop_together()
                    self.train_step()
                    for look in self.observers:
                        look(self.state.step, self.model)
                    self.look_around()
            if self.saved_step != self.state.step:
                self.save()
            exit_code = distributed.highest(self.interrupted.exit_code or 0)
        if distributed.is_first():
            self.draw()
        return int(exit_code)

    def look_around(self) -> None:
        """Evaluates, saves and samples where it is time to."""
        if self.worth_evaluating():
            self.evaluate()
        if self.worth_saving():
            self.save()
        if self.due(self.config.train.sample_interval):
            self.sample()

    def make_up_for_a_stop(self) -> None:
        """Evaluates where a signal ended the run before it could, so that nothing is missing."""
        if self.state.step and self.state.val_loss is None and self.worth_evaluating():
            self.look_around()

    def stop_together(self) -> None:
        """Raises Stopped in all processes after a signal to one of them."""
        if distributed.highest(self.interrupted.exit_code or 0):
            raise Stopped

    def poll(self) -> None:
        """Raises Stopped within a step after a signal; not where other processes would wait."""
        if distributed.world_size() == 1:
            self.interrupted.poll()

    def finished(self) -> bool:
        if self.progress() >= 1:
            return True
        patience = self.config.train.patience
        return patience is not None and self.state.evaluations_without_gain >= patience

    def progress(self) -> float:
        """The share of the training that is done, by steps or by the clock: what is further."""
        by_steps = self.state.step / self.config.train.max_steps
        minutes = self.config.train.max_minutes
        if not minutes:
            return by_steps
        return max(by_steps, distributed.from_first(lambda: self.log.seconds) / 60 / minutes)

    def due(self, interval: int) -> bool:
        return self.state.step % interval == 0

    # -------------------------------------------------------------------------- one step

    def train_step(self) -> None:
        started = time.monotonic()
        train, step = self.config.train, self.state.step
        rate = learning_rate(train, step, self.progress())
        loss, num_tokens = self.accumulate_gradients()
        self.require_finite(step + 1, "loss", loss, self.weights)
        gradients = [w.grad for w in self.model.parameters() if w.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        self.require_finite(step + 1, "gradient", float(norm), self.gradients)
        most = train.grad_clip or 1e30
        torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), most, norm)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad()
        if self.average is not None:
            self.average.update(self.model)
        self.state.step += 1
        self.state.tokens += num_tokens
        self.state.val_loss = None  # of these new weights
        self.train_loss = loss
        self.training_seconds = time.monotonic() - started
        self.log.advance(self.state.step / self.progress())
        if self.due(train.log_interval):
            self.log.training(self.state.step, loss, rate, num_tokens / self.training_seconds)

    def accumulate_gradients(self) -> tuple[float, int]:
        """Backpropagates the mean loss of one global batch; returns it and the token count."""
        batches = [self.batch(micro_step) for micro_step in range(self.config.train.accumulate)]
        num_tokens = int(distributed.total(sum(int((y != NOTHING).sum()) for _, y in batches)))
        share = num_tokens / distributed.world_size()  # the processes' gradients are averaged
        total = 0.0
        for micro_step, (x, y) in enumerate(batches):
            self.poll()
            self.seed_dropout(micro_step)
            with distributed.gradients_at(self.forward, last=micro_step == len(batches) - 1):
                with autocast(self.device, self.precision):
                    logits = self.forward(x)
                loss = token_losses(logits.float(), y).sum() / share
                loss.backward()
            total += loss.item()
        return distributed.total(total) / distributed.world_size(), num_tokens

    def batch(self, micro_step: int) -> tuple[Tensor, Tensor]:
        x, y = self.corpus.train.batch(
            self.config.seed,
            self.state.step,
            micro_step,
            distributed.rank(),
            distributed.world_size(),
            batch_size=self.config.train.batch_size // distributed.world_size(),
            context_length=self.config.model.context_length,
        )
        return torch.from_numpy(x).to(self.device), torch.from_numpy(y).to(self.device)

    def seed_dropout(self, micro_step: int) -> None:
        if self.config.model.dropout:
            entropy = [self.config.seed, self.state.step, micro_step]
            entropy += [distributed.rank()] if distributed.rank() else []
            torch.manual_seed(int(np.random.SeedSequence(entropy).generate_state(1)[0]))

    def weights(self) -> dict[str, Tensor]:
        return dict(self.model.named_parameters())

    def gradients(self) -> dict[str, Tensor]:
        named = self.weights().items()
        return {f"that of {name}": w.grad for name, w in named if w.grad is not None}

    def require_finite(
        self, step: int, what: str, value: float, behind: Callable[[], dict[str, Tensor]]
    ) -> None:
        """Raises UserError where `value` is no number, and names the tensor `behind` it."""
        if np.isfinite(value):
            return
        culprits = (name for name, tensor in behind().items() if not tensor.isfinite().all())
        culprit = next(culprits, None)
        cause = f", as {culprit} is not finite" if culprit else ""
        kept = f"step {self.saved_step}" if self.saved_step is not None else "none yet"
        advice = f"lower train.learning_rate (now {self.config.train.learning_rate:g})"
        raise UserError(
            f"step {step}: the {what} is {value}{cause}; only finite numbers can be learned "
            f"from; last good checkpoint: {kept}; {advice}",
            NON_FINITE,
        )

    # -------------------------------------------------------------------------- now and then

    def evaluate(self) -> None:
        """Measures the whole validation split and notes whether it is the best so far."""
        state, context_length = self.state, self.config.model.context_length
        with self.weights_to_use():
            losses = evaluate(self.model, self.corpus.val, context_length, each=self.poll)
            val_loss = distributed.from_first(lambda: mean_loss(losses))
            self.require_finite(state.step, "validation loss", val_loss, self.weights)
        state.val_loss = val_loss
        if state.best_val_loss is None or state.val_loss < state.best_val_loss:
            state.best_val_loss, state.best_step = state.val_loss, state.step
            state.evaluations_without_gain = 0
        else:
            state.evaluations_without_gain += 1
        more: dict[str, Any] = {"bits_per_byte": bits_per_byte(losses, self.corpus.val.num_bytes)}
        if self.corpus.floor is not None:
            more |= {"slots": self.corpus.floor.by_slot(losses)}
        self.log.evaluation(state.step, self.train_loss, state.val_loss, **more)

    def worth_evaluating(self) -> bool:
        return self.due(self.config.train.eval_interval) or self.finished()

    def worth_saving(self) -> bool:
        interval = self.config.train.save_interval or self.config.train.eval_interval
        return self.due(interval) or self.finished() or self.state.best_step == self.state.step

    def save(self) -> None:
        self.log.sync()
        averaged = self.average.tensors if self.average is not None else None
        keep = self.config.train.keep
        checkpoint.save(self.run_dir, self.state, self.model, self.optimizers, averaged, keep)
        self.saved_step = self.state.step

    def restore(self, folder: Path) -> None:
        """Takes weights, optimisers and counters from a checkpoint."""
        weights = read_tensors(folder / "model.safetensors")
        memory = read_tensors(folder / "optimizer.safetensors")
        if self.average is not None:
            self.average.tensors = weights
            weights = {
                name.removeprefix("weights."): weight
                for name, weight in memory.items()
                if name.startswith("weights.")
            }
        load_weights(self.model, weights, str(folder))
        load_optimizers(self.model, self.optimizers, memory, str(folder))
        self.state = checkpoint.read_state(folder)

    def weights_to_use(self) -> contextlib.AbstractContextManager:
        """A context in which the model holds its averaged weights, where there are any."""
        return self.average.inside(self.model) if self.average else contextlib.nullcontext()

    def sample(self) -> None:
        with self.weights_to_use():
            model = unsharded(self.model)  # for which a sharded one needs all processes
            if not distributed.is_first():
                return
            texts = generate(
                model,
                self.corpus.tokenizer,
                self.config.sample.prompt,
                self.config.sample.model_copy(update={"num_samples": 1}),
                self.config.seed,
                interrupted=lambda: bool(self.interrupted),
            )
        self.poll()
        self.log.sample(self.state.step, self.config.sample.prompt + texts[0])

    # -------------------------------------------------------------------------- the end

    def draw(self) -> None:
        from minigpt.loss_plot import draw_loss  # takes a quarter of a second to import

        best = self.state.best_val_loss
        floor = self.corpus.floor.mean if self.corpus.floor is not None else None
        title = self.run_dir.name
        if best is not None:
            title += f": validation loss {best:.3f}"
            title += f", {best - floor:.3f} above the exact floor" if floor is not None else ""
        draw_loss(self.log.records, self.run_dir / "loss.png", title, floor)

    def summary(self) -> dict[str, Any]:
        """What the run came to; losses in nats per token over the whole validation split."""
        evaluations = [record for record in self.log.records if "val_loss" in record]
        last = evaluations[-1] if evaluations else {}
        best = next((r for r in evaluations if r["step"] == self.state.best_step), {})
        floor = self.corpus.floor
        return {
            "best_val_loss": self.state.best_val_loss,
            "best_step": self.state.best_step,
            "last_val_loss": last.get("val_loss"),
            "bits_per_byte": best.get("bits_per_byte"),
            "floor": floor.mean if floor is not None else None,
            "slots": last.get("slots"),
            "steps": self.state.step,
            "tokens": self.state.tokens,
            "train_seconds": round(self.log.seconds, 1),
            "tokens_per_second": round(self.state.tokens / self.log.seconds),
            "parameters": self.model.num_parameters,
        }


def train(
    config: Config,
    corpus: Corpus,
    run_dir: Path,
    resume: bool = False,
    observers: Sequence[Observer] = (),
) -> int:
    """Trains in `run_dir`, from the start or from its last good checkpoint; -> exit code.

    `observers` are called after every step with its number and the model, to look and no more.
    Raises UserError where the folder, the corpus or the settings do not allow it, and where a
    loss is not finite.
    """
    if resume:
        earlier = distributed.from_first(lambda: run_directory.earlier_choices(run_dir, config))
        config = config.model_copy(update=earlier)
    config, choices = with_choices(config)
    distributed.require_same("the texts", corpus.fingerprint)
    first = distributed.is_first()
    lock = storage.locked(run_dir) if first else contextlib.nullcontext()
    with lock, using_threads(config.threads):
        found, warnings = distributed.from_first(lambda: prepare(run_dir, config, corpus, resume))
        trainer = Trainer(config, corpus, run_dir, Path(found) if found else None, observers)
        for line in [*choices, *(f"warning: {warning}" for warning in warnings)]:
            trainer.log.say(line)
        exit_code = trainer.run()
        if first:
            storage.write_json(run_dir / "summary.json", trainer.summary())
    return exit_code


def prepare(
    run_dir: Path, config: Config, corpus: Corpus, resume: bool
) -> tuple[str | None, list[str]]:
    """Makes a run directory or finds where to go on in it: a checkpoint's folder, and warnings."""
    if resume:
        folder, warnings = run_directory.resume(run_dir, config, corpus)
        return str(folder), warnings
    starting_point.require_same_model(config)
    starting_point.require_same_tokenizer(config, corpus.tokenizer)
    run_directory.start(run_dir, config, corpus)
    return None, []
