"""Writing a text, ours and others'."""

import argparse
from typing import Any

from benchmarks.measuring import Call, describe, machine, milliseconds
from benchmarks.peers import QUICK, VOCABULARY, Size, others, our_model, ratios

WRITTEN = (
    Size("4x128", 4, 4, 128, 256, 1),
    Size("4x128", 4, 4, 128, 256, 32),
    Size("6x384", 6, 6, 384, 256, 1),
)


def generate(options: argparse.Namespace) -> dict[str, Any]:
    """writing 200 tokens: ours, nanoGPT, Hugging Face with its cache; tokens a second"""
    import torch

    torch.set_num_threads(options.threads)
    print(f"{describe(machine())}\n\nin brackets: how many times as fast ours is")
    cases = []
    for size in (QUICK,) if options.quick else WRITTEN:
        number = min(200, size.context - 4)
        torch.manual_seed(0)
        prompt = torch.randint(VOCABULARY, (1, 4))
        model = our_model(size).eval()
        writers = {"ours": our_writer(model, prompt, size.batch, number)}
        for name, other in others(size, options.nanogpt).items():
            writers[name] = WRITERS[name](other.eval(), prompt.repeat(size.batch, 1), number)
        times = milliseconds(writers, 0.2 if options.quick else options.seconds)
        case = ratios(size, size.batch * number, times)
        if size.batch == 1:
            bandwidth = bytes_a_second(model.num_parameters)
            reached = case["tokens a second"]["ours"] * 4 * model.num_parameters / bandwidth
            case |= {"bytes a second": bandwidth, "share of bandwidth": reached}
            print(f"       reading the weights once a token takes {reached:.0%} of the time")
        cases.append(case)
    return {"machine": machine(), "cases": cases}


def bytes_a_second(number: int) -> float:
    """How fast as many numbers as the model has are read, from where the machine keeps them.

    By adding them up, two mebibytes at a time.
    """
    import torch

    parts = torch.ones(number).split(2**19)

    def read() -> None:
        for part in parts:
            part.sum()

    return 1000 * 4 * number / milliseconds({"read": read}, 0.5)["read"]


def our_writer(model: Any, prompt: Any, batch: int, number: int) -> Call:
    import torch

    from minigpt.config import SampleConfig
    from minigpt.generation import next_ids

    sampling = SampleConfig(max_new_tokens=number, min_p=None)

    @torch.inference_mode()
    def write() -> None:
        for _ in next_ids(model, prompt, sampling, 1, range(batch), True):
            pass

    return write


def nanogpt_writer(model: Any, prompts: Any, number: int) -> Call:
    return lambda: model.generate(prompts, number)


def transformers_writer(model: Any, prompts: Any, number: int) -> Call:
    import torch

    settings: dict[str, Any] = {"do_sample": True, "top_k": 0, "use_cache": True, "pad_token_id": 0}
    seen = torch.ones_like(prompts)
    return lambda: model.generate(
        prompts, attention_mask=seen, max_new_tokens=number, min_new_tokens=number, **settings
    )


WRITERS = {"nanoGPT": nanogpt_writer, "transformers": transformers_writer}
