"""Models of others in, runs out: python scripts/convert.py import|export ... [--help]"""

import os

from minigpt.errors import run_command
from minigpt.interop.arguments import parse


def main(arguments: list[str]) -> None:
    options = parse(arguments)  # mistakes before PyTorch, which takes seconds to import
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    if options.verb == "import":
        from minigpt.interop.incoming import import_model

        print(import_model(options.source, options.run, options.tokenizer, options.characters))
        return
    from minigpt.checkpoint import load_run

    run = load_run(options.run, options.checkpoint)
    print(exporter(options.out.suffix)(run, options.out))


def exporter(suffix: str):
    """What writes a file with this ending, or a folder."""
    if suffix == ".gguf":
        from minigpt.interop.gguf_file import export_gguf

        return export_gguf
    if suffix == ".onnx":
        from minigpt.interop.onnx_file import export_onnx

        return export_onnx
    from minigpt.interop.outgoing import export_folder

    return export_folder


if __name__ == "__main__":
    run_command(main)
