"""A run as an ONNX file: ids (B, T) to logits (B, T, V), for any B and any T that fits.

run -> FILE.onnx
"""

import contextlib
import copy
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

from minigpt import storage
from minigpt.checkpoint import Run
from minigpt.errors import RESOURCES, UserError
from minigpt.extras import required
from minigpt.interop.outgoing import require_new
from minigpt.interop.tokenizers import to_json

LARGEST = 2**31 - 1  # bytes; protobuf's limit


def export_onnx(run: Run, path: Path) -> str:
    """Writes the model and, beside it, FILE.tokenizer.json; -> a line to print.

    Raises UserError where a package is missing or the model is too large for one file.
    """
    for package in ("onnx", "onnxscript"):
        required(package, "export", str(path), "ONNX")
    size = 4 * sum(weight.numel() for weight in run.model.state_dict().values())
    if size > LARGEST:
        message = f"{path}: {size / 2**30:.1f} GiB of weights, and an ONNX file holds 2"
        raise UserError(f"{message}; export a smaller run, or to a folder", RESOURCES)
    beside = path.with_suffix(".tokenizer.json")
    require_new(path)
    require_new(beside)
    tokenizer = to_json(run.tokenizer)
    storage.write_bytes(path, to_bytes(run))
    storage.write_json(beside, tokenizer)
    return f"{path}: step {run.step:,} of {run.run_dir}, ids (B, T) -> logits (B, T, V); {beside}"


def to_bytes(run: Run) -> bytes:
    model = copy.deepcopy(run.model).cpu().float().eval()
    model.write_out_attention()  # plain sums, as in the lesson, which every runtime knows
    length = min(run.config.model.context_length, 3)
    ids = torch.zeros(2, length, dtype=torch.long)
    longest = run.config.model.context_length
    sizes = {0: torch.export.Dim("batch")}
    if longest > 3:
        sizes[1] = torch.export.Dim("length", max=longest)
    with quietly(), torch.no_grad():
        program = torch.onnx.export(
            model,
            (ids,),
            dynamo=True,
            input_names=["ids"],
            output_names=["logits"],
            dynamic_shapes=(sizes,),
            verbose=False,
        )
    assert program is not None
    return program.model_proto.SerializeToString()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without what the packages say about themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
