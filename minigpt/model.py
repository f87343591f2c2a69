"""A GPT: token embedding, positions, blocks of attention and feed-forward, one score per token.

Each block adds to a stream that runs through the model: what attention found elsewhere in the
text, then what the feed-forward layer makes of it. Sources: Radford et al. 2019 (GPT-2);
Xiong et al. 2020 (normalisation before each layer); So et al. 2021 (squared ReLU).

ids (B, T) -> logits (B, T, V)
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from minigpt.attention import MultiHeadAttention
from minigpt.cache import KVCache, LayerCache
from minigpt.config import ModelConfig
from minigpt.dropout import Dropout
from minigpt.rotary import Rotary


def relu_squared(x: Tensor) -> Tensor:
    return F.relu(x).square()


def gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "relu2": relu_squared,
}


class FeedForward(nn.Module):
    """What each token makes of what it has gathered, alone: (B, T, E) -> (B, T, E)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        hidden_dim = config.feed_forward_dim
        self.expand = nn.Linear(config.embed_dim, hidden_dim, bias=config.bias)
        self.contract = nn.Linear(hidden_dim, config.embed_dim, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.activation(self.expand(x)))


class TransformerBlock(nn.Module):
    """Attention, then feed-forward, each added to the stream: (B, T, E) -> (B, T, E).

    `heads` are the numbers of its heads: of a layer that was pruned, those that are left.
    """

    def __init__(self, config: ModelConfig, rotary: Rotary | None, layer: int = 0) -> None:
        super().__init__()
        self.heads = config.heads_in(layer)
        self.attention_norm = nn.LayerNorm(config.embed_dim, bias=config.bias)
        self.attention = MultiHeadAttention(
            config.embed_dim,
            config.head_dim,
            len(self.heads),
            bias=config.bias,
            dropout=config.dropout,
            rotary=rotary,
            qk_norm=config.qk_norm,
        )
        self.feed_forward_norm = nn.LayerNorm(config.embed_dim, bias=config.bias)
        self.feed_forward = FeedForward(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, cache: LayerCache | None = None) -> Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x), cache))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class GPT(nn.Module):
    """The whole model. `config` is its shape, `vocab_size` comes from the tokenizer."""

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.config, self.vocab_size = config, vocab_size
        self.token_embedding = nn.Embedding(vocab_size, config.embed_dim)
        rotary = None
        if config.positions == "learned":
            self.position_embedding = nn.Embedding(config.context_length, config.embed_dim)
        else:
            rotary = Rotary(config.head_dim, config.context_length)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            TransformerBlock(config, rotary, layer) for layer in range(config.num_layers)
        )
        self.final_norm = nn.LayerNorm(config.embed_dim, bias=config.bias)
        self.head = nn.Linear(config.embed_dim, vocab_size, bias=False)
        if config.tie_embeddings:
            self.head.weight = self.token_embedding.weight
        self.initialise()

    def initialise(self) -> None:
        """Draws every matrix; what is added to the stream starts small, so that depth is safe."""
        small = 0.02 / (2 * self.config.num_layers) ** 0.5
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                adds_to_stream = name.endswith(("out_proj.weight", "contract.weight"))
                nn.init.normal_(parameter, std=small if adds_to_stream else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.ones_(parameter)

    def forward(self, ids: Tensor, cache: KVCache | None = None) -> Tensor:
        """Scores every token as the next one: ids (B, T) -> logits (B, T, V).

        With a cache, `ids` are only the tokens that it has not seen. Raises ValueError when
        the text is longer than the context.
        """
        start = cache.length if cache is not None else 0
        end = start + ids.size(1)
        if end > self.config.context_length:
            raise ValueError(f"{end} tokens do not fit the context of {self.config.context_length}")
        x = self.token_embedding(ids)
        if self.config.positions == "learned":
            x = x + self.position_embedding.weight[start:end]
        x = self.dropout(x)
        for index, block in enumerate(self.blocks):
            x = block(x, cache.layers[index] if cache is not None else None)
        return self.head(self.final_norm(x))

    def write_out_attention(self) -> None:
        """Computes attention as in the lesson, without PyTorch's fused kernel."""
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):
                module.fused = False

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())
