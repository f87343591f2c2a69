"""Models of others as run directories: GPT-2 from a folder or the hub, and nanoGPT's.

folder, hub name or safetensors file -> run directory
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from torch import Tensor

from minigpt import checkpoint, storage
from minigpt.checkpoint import TrainingState
from minigpt.command_line import dump_yaml
from minigpt.config import Config, ModelConfig
from minigpt.errors import CONFIG, DATA, UserError
from minigpt.extras import required
from minigpt.interop.gpt2 import checked, from_gpt2, model_config, read_settings, shapes, wrong
from minigpt.interop.tokenizers import read_tokenizer
from minigpt.model import GPT
from minigpt.saved_runs import PICKLED
from minigpt.tokenizer import Tokenizer
from minigpt.weights import load_weights

HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
FILES = ["config.json", "model.safetensors", "tokenizer.json", "vocab.json", "merges.txt"]
MASKS = re.compile(r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias")  # constants in older files
CONVERT = (
    "from transformers import AutoModelForCausalLM as M; "
    "M.from_pretrained('FOLDER').save_pretrained('NEW')"
)
SEE = "see docs/interop.md"


def import_model(
    source: str, run_dir: Path, tokenizer: str | None = None, text: Path | None = None
) -> str:
    """Makes a run of another project's model; -> a line to print. Raises UserError.

    `tokenizer` and `text`, whose characters are the vocabulary of `char`, are for nanoGPT's
    files, which hold no tokenizer.
    """
    if (run_dir.exists() or run_dir.is_symlink()) and not empty_folder(run_dir):
        raise UserError(f"{run_dir}: is there already; give another name for the run", CONFIG)
    path = Path(source)
    if path.suffix in PICKLED:
        raise pickled(path)
    if path.suffix == ".safetensors":
        config, found, weights = read_nanogpt(path, tokenizer, text)
    else:
        require_gpt2_folder(path, tokenizer, text)
        config, found, weights = read_gpt2(path if path.is_dir() else from_hub(source))
    model = GPT(config, found.vocab_size)
    load_weights(model, weights, source)
    write_run(run_dir, source, config, found, model)
    size = f"{model.num_parameters:,} parameters, {found.vocab_size:,} tokens"
    return f"{run_dir}: {source}, {size}; next: python scripts/generate.py {run_dir}"


def require_gpt2_folder(path: Path, tokenizer: str | None, text: Path | None) -> None:
    """Raises UserError for what is neither a folder of GPT-2 nor may be a name on the hub."""
    if path.is_file():
        advice = "give the folder that holds it, or nanoGPT's weights as .safetensors"
        raise UserError(f"{path}: is a file; {advice}", DATA)
    if (path / "config.yaml").is_file() and (path / "checkpoints").is_dir():
        advice = f"python scripts/generate.py {path}, or train on from it with init_from={path}"
        raise UserError(f"{path}: is a run already; use {advice}", CONFIG)
    if tokenizer or text:
        option = "--tokenizer" if tokenizer else "--characters"
        message = f"{option}: is for nanoGPT's weights, and GPT-2 brings its tokenizer"
        raise UserError(f"{message}; leave it out", CONFIG)


def empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def write_run(
    run_dir: Path, source: str, config: ModelConfig, tokenizer: Tokenizer, model: GPT
) -> None:
    """Writes a run at step 0, whole or not at all."""
    data = {"source": "text", "path": f"imported from {source}", "tokenizer": tokenizer.kind}
    whole = Config.model_validate(
        {"run_dir": str(run_dir), "data": data, "model": config.model_dump()}
    )
    storage.remove_leftovers(run_dir.parent, run_dir.name)
    with storage.new_folder(run_dir) as folder:
        storage.write_text(folder / "config.yaml", dump_yaml(whole))
        tokenizer.save(folder / "tokenizer.json")
        checkpoint.save(folder, TrainingState(), model, [])


# ------------------------------------------------------------------------------ files


def pickled(path: Path) -> UserError:
    advice = f'convert it on your side with python -c "{CONVERT}", or for nanoGPT {SEE}'
    return UserError(f"{path}: pickled weights can run code and are not read; {advice}", DATA)


def from_hub(name: str) -> Path:
    """The folder into which the hub's client has put a model; raises UserError."""
    if not HUB_NAME.fullmatch(name):
        message = f"{name}: no such folder, and no name on the hub such as gpt2 or user/model"
        raise UserError(f"{message}; give one of these", DATA)
    hub = required("huggingface_hub", "hf", name, "a model from the hub")
    try:
        return Path(hub.snapshot_download(name, allow_patterns=FILES))
    except (OSError, ValueError) as error:  # all of the client's errors are of these two kinds
        reason = str(error).splitlines()[0].rstrip(".")
        message = f"{name}: is no folder here and can't be had from the hub ({reason})"
        raise UserError(f"{message}; check the name and the network", DATA) from None


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the notes of a safetensors file; raises UserError."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except OSError as error:
        reason = error.strerror or "can't be read"
    except SafetensorError:
        reason = "damaged, or no safetensors file"
    raise UserError(f"{path}: {reason}; give a whole model.safetensors", DATA)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror
    except (ValueError, RecursionError):
        reason = "no JSON"
    raise UserError(f"{path}: {reason}; give the folder of a GPT-2 model", DATA)


# ------------------------------------------------------------------------------ Hugging Face


def read_gpt2(folder: Path) -> tuple[ModelConfig, Tokenizer, dict[str, Tensor]]:
    """A GPT-2 as transformers saves it, in our terms."""
    settings = read_settings(read_json(folder / "config.json"), str(folder / "config.json"))
    config = model_config(settings, str(folder / "config.json"))
    path = folder / "model.safetensors"
    if not path.exists():
        raise no_weights(path)
    tensors = {full_name(name): tensor for name, tensor in read_tensors(path)[0].items()}
    tensors = {name: tensor for name, tensor in tensors.items() if not MASKS.fullmatch(name)}
    drop_tied_head(tensors, config, str(path))
    theirs = checked(tensors, shapes(config, settings.vocab_size, transposed=True), str(path))
    tokenizer = read_tokenizer(folder)
    if tokenizer.vocab_size != settings.vocab_size:
        message = (
            f"the model has {settings.vocab_size} tokens, the tokenizer {tokenizer.vocab_size}"
        )
        raise UserError(f"{folder}: {message}; give those that belong together", DATA)
    return config, tokenizer, from_gpt2(theirs, config, transposed=True)


def no_weights(path: Path) -> UserError:
    """Says what lies in the folder instead, and how it becomes what is read."""
    for other in sorted(path.parent.iterdir()):
        if other.suffix in PICKLED:
            return pickled(other)
        if re.fullmatch(r"model-\d+-of-\d+\.safetensors", other.name):
            whole = CONVERT.replace("'NEW'", "'NEW', max_shard_size='100GB'")
            advice = f'put them into one on your side with python -c "{whole}"'
            return UserError(f"{path}: is missing, for {other.name} is a part; {advice}", DATA)
    advice = f'weights of another kind become it on your side with python -c "{CONVERT}"'
    return UserError(f"{path}: is missing; {advice}", DATA)


def full_name(name: str) -> str:
    """OpenAI's own files leave the first word of the names out."""
    bare = name.startswith(("wte.", "wpe.", "h.", "ln_f."))
    return f"transformer.{name}" if bare else name


def drop_tied_head(tensors: dict[str, Tensor], config: ModelConfig, where: str) -> None:
    """Leaves a tied head out; raises UserError where it is not what it is tied to."""
    if config.tie_embeddings and "lm_head.weight" in tensors:
        head, embedding = tensors.pop("lm_head.weight"), tensors.get("transformer.wte.weight")
        if embedding is not None and not head.equal(embedding):
            raise wrong(where, "lm_head.weight is not transformer.wte.weight, to which it is tied")


# ------------------------------------------------------------------------------ nanoGPT


def read_nanogpt(
    path: Path, tokenizer: str | None, text: Path | None
) -> tuple[ModelConfig, Tokenizer, dict[str, Tensor]]:
    """A nanoGPT model as the two lines of docs/interop.md save it, in our terms.

    Its rows for tokens that the tokenizer does not have, which only make a matrix's size round,
    are left out.
    """
    tensors, notes = read_tensors(path)
    where = str(path)
    config, vocab_size = nanogpt_config(notes, where)
    tensors = {name.removeprefix("_orig_mod."): tensor for name, tensor in tensors.items()}
    tensors = {name: tensor for name, tensor in tensors.items() if not is_mask(name, tensor)}
    drop_tied_head(tensors, config, where)
    theirs = checked(tensors, shapes(config, vocab_size, transposed=False), where)
    found = nanogpt_tokenizer(tokenizer, text, vocab_size)
    spare = vocab_size - found.vocab_size
    if spare < 0 or (spare and found.kind != "gpt2"):
        message = (
            f"the model has {vocab_size} tokens, the {found.kind} tokenizer {found.vocab_size}"
        )
        raise UserError(f"{where}: {message}; {TOKENIZERS}", DATA)
    weights = from_gpt2(theirs, config, transposed=False)
    weights["token_embedding.weight"] = weights["token_embedding.weight"][: found.vocab_size]
    return config, found, weights


def is_mask(name: str, tensor: Tensor) -> bool:
    return MASKS.fullmatch(name) is not None and tensor.ndim == 4


def nanogpt_config(notes: dict[str, str], where: str) -> tuple[ModelConfig, int]:
    """Our settings of the model, and its number of tokens; raises UserError."""
    try:
        args = json.loads(notes["model_args"])
        config = ModelConfig.model_validate(
            {
                "num_layers": args["n_layer"],
                "num_heads": args["n_head"],
                "embed_dim": args["n_embd"],
                "context_length": args["block_size"],
                "feed_forward_multiple": 4,
                "activation": "gelu",
                "positions": "learned",
                "bias": args["bias"],
                "dropout": args.get("dropout", 0.0),
                "tie_embeddings": True,
                "qk_norm": False,
            }
        )
        return config, int(args["vocab_size"])
    except (KeyError, TypeError, ValueError, ValidationError):
        message = f"{where}: its notes hold no model_args of nanoGPT"
        raise UserError(f"{message}; save it with the two lines in docs/interop.md", DATA) from None


TOKENIZERS = "give --tokenizer gpt2 or byte, or --characters FILE, the text that it learned from"


def nanogpt_tokenizer(kind: str | None, text: Path | None, vocab_size: int) -> Tokenizer:
    """What nanoGPT's data preparation used; raises UserError where that can't be known."""
    from minigpt.vocabulary import gpt2

    if text is not None:
        try:
            return Tokenizer.char(text.read_text(encoding="utf-8"))
        except OSError as error:
            reason = error.strerror
        except ValueError:
            reason = "not UTF-8, or empty"
        raise UserError(f"--characters {text}: {reason}; give the text it learned from", DATA)
    kinds: dict[str, Callable[[], Tokenizer]] = {"gpt2": gpt2, "byte": Tokenizer.byte}
    if kind is None and vocab_size not in (50257, 50304):
        raise UserError(f"--tokenizer: missing for {vocab_size} tokens; {TOKENIZERS}", CONFIG)
    return kinds[kind or "gpt2"]()
