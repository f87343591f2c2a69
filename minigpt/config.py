"""Every setting: its type, its default, what it is for, what is allowed.

Defaults stand here and nowhere else; they are those of the stories recipe. The vocabulary's size
is no setting of the model: it comes from the tokenizer.

values by name -> a frozen Config
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


def setting(default: Any, description: str, **limits: Any) -> Any:
    """A field with its default, one line of help, and what is allowed."""
    return Field(default, description=description, **limits)


Text = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
HeadName = Annotated[str, Field(pattern=r"^L\d{1,4}H\d{1,4}$")]
Count = Annotated[int, Field(ge=1, le=10**12)]


class Settings(BaseModel):
    # A default is made what its type says, as a value from a file is: 2 becomes 2.0.
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )


class DataConfig(Settings):
    """What is read."""

    source: Literal["stories", "text"] = setting("stories", "generated stories, or any text")
    path: Text | None = setting(None, "a text file, a folder or a pattern; implies source text")
    field: Text = setting("text", "what holds the text in .jsonl and Parquet files")
    encoding: Text = setting("utf-8", "how the text's bytes are to be read")
    tokenizer: Literal["auto", "char", "byte", "word", "bpe", "gpt2"] = setting(
        "auto", "what a token is; auto: word for stories, bpe for text"
    )
    vocab_size: int = setting(1024, "tokens of a word or bpe vocabulary", ge=257, le=2**20)
    val_fraction: float = setting(0.1, "share at the end to validate on", gt=0, lt=1)

    @model_validator(mode="after")
    def check(self) -> "DataConfig":
        if self.source == "text" and self.path is None:
            raise ValueError("path: missing; source text needs a file, a folder or a pattern")
        if self.source == "stories" and self.path is not None:
            raise ValueError("source: stories are generated, so no path is read; leave one out")
        if self.source == "stories" and self.tokenizer not in ("auto", "word"):
            raise ValueError("tokenizer: stories are made of words; allowed: auto, word")
        return self

    @property
    def tokenizer_kind(self) -> str:
        if self.tokenizer != "auto":
            return self.tokenizer
        return "word" if self.source == "stories" else "bpe"


class ModelConfig(Settings):
    """The shape of the model."""

    num_layers: int = setting(3, "blocks of attention and feed-forward", ge=1, le=512)
    num_heads: int = setting(4, "attention heads in each block", ge=1, le=512)
    embed_dim: int = setting(128, "numbers per token in the stream", ge=1, le=65_536)
    context_length: int = setting(128, "tokens seen at once", ge=1, le=2**20)
    feed_forward_multiple: float = setting(2, "width of feed-forward over embed_dim", gt=0, le=64)
    activation: Literal["gelu", "gelu_tanh", "relu2"] = setting("relu2", "inside feed-forward")
    positions: Literal["learned", "rotary"] = setting("rotary", "how a token's place is told")
    bias: bool = setting(False, "biases in linear layers and norms, as GPT-2 has them")
    dropout: float = setting(0.0, "share of numbers dropped while training", ge=0, lt=1)
    tie_embeddings: bool = setting(True, "one matrix reads tokens and scores them")
    qk_norm: bool = setting(True, "queries and keys all of one length")
    first_layer_heads: int | None = setting(
        None, "heads of the first layer; None: as all, for stories 2", ge=1, le=512
    )
    pruned: list[HeadName] = setting([], "heads taken out, such as [L0H1, L2H3]")

    @model_validator(mode="after")
    def check(self) -> "ModelConfig":
        if self.embed_dim % self.num_heads:
            raise ValueError(
                f"embed_dim: {self.embed_dim} can't be shared among {self.num_heads} heads; a "
                f"multiple of num_heads is allowed, such as {self.num_heads * self.head_dim}"
            )
        if self.positions == "rotary" and self.head_dim % 2:
            raise ValueError(
                f"embed_dim: {self.head_dim} per head is odd; rotary positions need an even "
                "number; change embed_dim or num_heads, or use positions learned"
            )
        self.check_pruned()
        return self

    def check_pruned(self) -> None:
        known = {
            f"L{layer}H{head}"
            for layer in range(self.num_layers)
            for head in range(self.heads_before_pruning(layer))
        }
        for name in self.pruned:
            if name not in known:
                last = f"L{self.num_layers - 1}H{self.num_heads - 1}"
                raise ValueError(f"pruned: there is no head {name}; allowed: L0H0 to {last}")
        for layer in range(self.num_layers):
            if not self.heads_in(layer):
                raise ValueError(f"pruned: layer {layer} would have no head; leave it at least one")

    def heads_in(self, layer: int) -> list[int]:
        """Which heads a layer has: all but the pruned."""
        heads = range(self.heads_before_pruning(layer))
        return [head for head in heads if f"L{layer}H{head}" not in self.pruned]

    def heads_before_pruning(self, layer: int) -> int:
        few = self.first_layer_heads if layer == 0 else None
        return min(few or self.num_heads, self.num_heads)

    @property
    def head_dim(self) -> int:
        return max(self.embed_dim // self.num_heads, 1)

    @property
    def feed_forward_dim(self) -> int:
        return max(round(self.feed_forward_multiple * self.embed_dim), 1)

    def num_parameters(self, vocab_size: int) -> int:
        """Exact, without building the model."""
        width, hidden = self.embed_dim, self.feed_forward_dim
        joined = [len(self.heads_in(layer)) * self.head_dim for layer in range(self.num_layers)]
        attention = sum(4 * width * dim + self.bias * (3 * dim + width) for dim in joined)
        feed_forward = 2 * width * hidden + self.bias * (hidden + width)
        norm = width + self.bias * width
        embeddings = vocab_size * width * (1 if self.tie_embeddings else 2)
        positions = self.context_length * width if self.positions == "learned" else 0
        block = feed_forward + 2 * norm + self.qk_norm * 2 * self.head_dim
        return embeddings + positions + attention + self.num_layers * block + norm


class TrainConfig(Settings):
    """How the model is trained."""

    max_steps: Count = setting(2900, "steps to train")
    max_minutes: float | None = setting(None, "time budget; ends training if first", gt=0)
    batch_size: int = setting(8, "rows per micro-batch", ge=1, le=2**20)
    accumulate: int = setting(1, "micro-batches per step", ge=1, le=2**20)
    optimizer: Literal["adamw", "muon"] = setting("muon", "muon: for the blocks' matrices")
    learning_rate: float = setting(0.008, "highest learning rate", gt=0)
    min_learning_rate: float = setting(0.0, "learning rate at the end", ge=0)
    schedule: Literal["cosine", "linear", "wsd", "constant"] = setting(
        "linear", "how the rate falls; wsd: warm-up, stable, decay"
    )
    warmup_steps: int = setting(20, "steps until the highest rate", ge=0)
    weight_decay: float = setting(0.1, "pull of the matrices towards zero", ge=0)
    beta1: float = setting(0.9, "AdamW's memory of gradients", ge=0, lt=1)
    beta2: float = setting(0.95, "AdamW's memory of their squares", ge=0, lt=1)
    grad_clip: float | None = setting(1.0, "longest gradient allowed", gt=0)
    eval_interval: Count = setting(725, "steps between evaluations")
    save_interval: Count | None = setting(None, "steps between checkpoints; None: eval_interval")
    sample_interval: Count = setting(725, "steps between samples")
    log_interval: Count = setting(10, "steps between logged losses")
    patience: Count | None = setting(None, "evaluations without gain until it stops")
    ema: float | None = setting(None, "memory of averaged weights, such as 0.99", gt=0, lt=1)
    keep: Count = setting(2, "newest checkpoints to keep, beside the best")

    @model_validator(mode="after")
    def check(self) -> "TrainConfig":
        if self.min_learning_rate > self.learning_rate:
            raise ValueError(
                f"min_learning_rate: {self.min_learning_rate:g} is above learning_rate "
                f"{self.learning_rate:g}; allowed: at most that; lower it"
            )
        return self


class SampleConfig(Settings):
    """How text is written."""

    prompt: str = setting("", "what the text begins with")
    num_samples: int = setting(3, "texts to write", ge=1, le=2**20)
    max_new_tokens: int = setting(200, "tokens to write at most", ge=1, le=2**30)
    temperature: float = setting(1.0, "0: always the likeliest; above 1: wilder", ge=0)
    top_k: int | None = setting(None, "draw among this many likeliest; 0 or None: all", ge=0)
    top_p: Share | None = setting(None, "draw among the likeliest that make this share")
    min_p: Share | None = setting(0.15, "drop tokens below this share of the likeliest")
    repetition_penalty: float = setting(1.0, "above 1: fewer repetitions", gt=0)
    stop: list[str] | None = setting(None, "strings that end the text")


class LogConfig(Settings):
    """Who else is told, beside metrics.jsonl."""

    tensorboard: bool = setting(False, "numbers, samples and attention, for TensorBoard")
    wandb: bool = setting(False, "the same for Weights & Biases")
    wandb_project: Text = setting("minigpt", "the project there")


class Config(Settings):
    """Everything about a run."""

    run_dir: Text | None = setting(None, "where the run is kept; None: the next runs/NAME-N")
    init_from: Text | None = setting(None, "a run whose weights, model and tokenizer to start from")
    seed: int = setting(1337, "of all random numbers", ge=0, lt=2**63)
    device: str = setting(
        "auto", "auto, cpu, cuda, cuda:N or mps", pattern=r"^(auto|cpu|cuda(:\d+)?|mps)$"
    )
    precision: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "auto", "number format of the products; auto: what is faster here"
    )
    threads: int | None = setting(
        None, "of the processor; None: as many as are fast", ge=1, le=2**10
    )
    compile: Literal["auto", "off", "on"] = setting("auto", "torch.compile; auto: on a GPU")
    shard: bool = setting(
        False, "with several processes: each keeps a part of the model, which saves memory"
    )
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()
    sample: SampleConfig = SampleConfig()
    log: LogConfig = LogConfig()


GROUPS: dict[str, type[Settings]] = {
    "": Config,
    "data": DataConfig,
    "model": ModelConfig,
    "train": TrainConfig,
    "sample": SampleConfig,
    "log": LogConfig,
}
