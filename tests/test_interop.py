"""Models of other projects in and out, with those projects themselves as the authority.

Promise N: GPT-2 of three shapes, in and out, and broken sets of weights.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import REPOSITORY, SHARED_DATA, TEXT, run_script
from hypothesis import given, settings
from hypothesis import strategies as st

os.environ["HF_HUB_OFFLINE"] = "1"
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the packages' own imports
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    import tokenizers
    from safetensors.torch import load_file, save_file

from minigpt import checkpoint, storage
from minigpt.checkpoint import TrainingState, load_run
from minigpt.command_line import dump_yaml, load_config
from minigpt.config import Config, SampleConfig
from minigpt.errors import UserError
from minigpt.generation import generate
from minigpt.heads.capture import capture_attention
from minigpt.heads.inspection import inspect
from minigpt.interop import gpt2, viewers
from minigpt.interop import tokenizers as theirs_and_ours
from minigpt.interop.gguf_file import export_gguf
from minigpt.interop.incoming import import_model
from minigpt.interop.onnx_file import export_onnx
from minigpt.interop.outgoing import export_folder
from minigpt.model import GPT
from minigpt.stories import spelling
from minigpt.tokenizer import Tokenizer
from minigpt.vocabulary import build_tokenizer

GPT2S_VOCABULARY = pytest.mark.skipif(
    not (SHARED_DATA / "tiktoken_cache").exists(), reason="GPT-2's vocabulary is not there"
)
transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
SHAPES = {
    "small": {"n_layer": 2, "n_head": 3, "n_embd": 21, "n_positions": 211},
    "untied": {"n_layer": 1, "n_head": 2, "n_embd": 26, "n_positions": 223}
    | {"tie_word_embeddings": False, "n_inner": 39},
    "deep": {"n_layer": 5, "n_head": 1, "n_embd": 14, "n_positions": 227}
    | {"activation_function": "gelu"},
}
EVERYTHING = {"positions": "learned", "qk_norm": False, "bias": True, "activation": "gelu_tanh"}
SIZES = {"num_layers": 2, "num_heads": 3, "embed_dim": 18, "context_length": 211}
KINDS = {
    kind: build_tokenizer(kind, 300, lambda: [TEXT + "né 1234 €’s"])
    for kind in ("char", "byte", "word", "bpe")
}


def decisive(model):
    """Weights large enough that no two tokens score nearly the same."""
    torch.manual_seed(2)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model.eval()


def learned_by_them(vocab_size):
    """A byte-pair tokenizer that Hugging Face's own trainer made."""
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.pre_tokenizer, theirs.decoder = level, tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=level.alphabet(), show_progress=False
    )
    theirs.train_from_iterator([TEXT], trainer)
    return theirs


@pytest.fixture(scope="module", params=SHAPES)
def shape(request):
    return request.param


@pytest.fixture(scope="module")
def gpt2_folders(tmp_path_factory):
    """Random GPT-2s of three shapes, saved by transformers."""
    root, tokenizer = tmp_path_factory.mktemp("gpt2"), learned_by_them(300)
    for name, sizes in SHAPES.items():
        config = transformers.GPT2Config(
            **sizes, vocab_size=300, bos_token_id=None, eos_token_id=None
        )
        decisive(transformers.GPT2LMHeadModel(config)).save_pretrained(root / name)
        tokenizer.save(str(root / name / "tokenizer.json"))
    return root


@pytest.fixture(scope="module")
def imported(gpt2_folders, shape):
    import_model(str(gpt2_folders / shape), gpt2_folders / f"run-{shape}")
    return load_run(gpt2_folders / f"run-{shape}")


def load_theirs(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)


def saved_run(folder, tokenizer, config=None, **model):
    """A run with decisive weights, as if it had been trained."""
    if config is None:
        data = {"source": "text", "path": "gone.txt", "tokenizer": tokenizer.kind}
        config = Config.model_validate({"data": data, "model": SIZES | model})
    storage.write_text(folder / "config.yaml", dump_yaml(config))
    tokenizer.save(folder / "tokenizer.json")
    network = decisive(GPT(config.model, tokenizer.vocab_size))
    checkpoint.save(folder, TrainingState(step=7), network, [])
    return load_run(folder)


def random_ids(run):
    longest = min(run.config.model.context_length, 60)
    return torch.randint(run.model.vocab_size, (3, longest))


@torch.no_grad()
def require_same_function(run, folder, prompt, most=1e-5):
    """Logits and 200 greedy tokens (as far as the context goes) agree, and so do the prompts.

    Trained models have large logits, of which a few roundings in float32 are more than 1e-5.
    """
    theirs, tokenizer = load_theirs(folder)
    ids = random_ids(run)
    torch.testing.assert_close(run.model(ids), theirs(ids).logits, rtol=0, atol=most)
    start = torch.tensor([tokenizer(prompt).input_ids])
    assert start[0].tolist() == run.tokenizer.encode(prompt)
    new = min(200, run.config.model.context_length - start.size(1))
    sampling = SampleConfig(temperature=0, num_samples=1, max_new_tokens=new)
    ours = generate(run.model, run.tokenizer, prompt, sampling, seed=0)[0]
    written = theirs.generate(start, max_new_tokens=new, do_sample=False)[0, start.size(1) :]
    assert len(written) == new
    assert tokenizer.decode(written) == ours


# ------------------------------------------------------------------------------ GPT-2, both ways


@pytest.mark.promise("N")
def test_gpt2_comes_in_as_the_same_function(gpt2_folders, shape, imported):
    require_same_function(imported, gpt2_folders / shape, "The red dog")


@pytest.mark.promise("N")
def test_gpt2_goes_out_with_the_same_tensors(gpt2_folders, shape, imported, tmp_path):
    export_folder(imported, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"A GPT, imported from {gpt2_folders / shape}" in card
    there = load_file(gpt2_folders / shape / "model.safetensors")
    back = load_file(tmp_path / "out" / "model.safetensors")
    assert back.keys() == there.keys()
    assert all(torch.equal(back[name], there[name]) for name in there)
    old = transformers.AutoConfig.from_pretrained(gpt2_folders / shape)
    new = transformers.AutoConfig.from_pretrained(tmp_path / "out")
    for name in (*SHAPES["untied"], "activation_function", "vocab_size"):
        if name != "n_inner":
            assert getattr(new, name) == getattr(old, name), name


def test_the_tokenizer_that_comes_in_encodes_as_theirs(gpt2_folders, imported):
    theirs = tokenizers.Tokenizer.from_file(str(gpt2_folders / "small" / "tokenizer.json"))

    @given(st.text(max_size=40) | st.text("The red dogs'’ \n\t12é", max_size=60))
    @settings(max_examples=150)
    def same(text):
        assert imported.tokenizer.encode(text) == theirs.encode(text).ids

    same()


def test_openais_own_names_and_numbers_come_in_too(gpt2_folders, tmp_path):
    folder = shutil.copytree(gpt2_folders / "small", tmp_path / "old")
    tensors = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    bare |= {f"h.{layer}.attn.bias": torch.ones(1, 1, 211, 211).tril() for layer in range(2)}
    bare["lm_head.weight"] = bare["wte.weight"].clone()
    save_file({name: tensor.half() for name, tensor in bare.items()}, folder / "model.safetensors")
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    theirs.model.save(str(folder))  # vocab.json, merges.txt
    (folder / "tokenizer.json").unlink()
    import_model(str(folder), tmp_path / "run")
    run = load_run(tmp_path / "run")
    kept = run.model.state_dict()["token_embedding.weight"]
    assert torch.equal(kept, tensors["transformer.wte.weight"].half().float())
    assert run.tokenizer.encode(TEXT) == theirs.encode(TEXT).ids


@GPT2S_VOCABULARY
def test_gpt2s_own_vocabulary_goes_out_and_comes_back(monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(SHARED_DATA / "tiktoken_cache"))
    ours = build_tokenizer("gpt2", 0, lambda: [])
    content = theirs_and_ours.to_json(ours)
    assert theirs_and_ours.from_json(content).fingerprint == ours.fingerprint
    theirs = tokenizers.Tokenizer.from_str(json.dumps(content))
    assert theirs.encode("Hello world<|endoftext|>").ids == [15496, 995, 50256]
    text = (SHARED_DATA / "tinyshakespeare.txt").read_text(encoding="utf-8")[:20_000]
    assert theirs.encode(text).ids == ours.encode(text)


def cached_gpt2():
    """The folder of GPT-2 itself, where somebody has fetched it before; None elsewhere."""
    from huggingface_hub import try_to_load_from_cache

    paths = [try_to_load_from_cache("gpt2", name) for name in ("config.json", "model.safetensors")]
    return Path(paths[0]).parent if all(isinstance(path, str) for path in paths) else None


@pytest.mark.skipif(cached_gpt2() is None, reason="GPT-2 itself is not in the hub's cache here")
def test_gpt2_itself_comes_in_by_its_name(tmp_path):
    import_model("gpt2", tmp_path / "run")
    run = load_run(tmp_path / "run")
    require_same_function(run, cached_gpt2(), "The red dog", most=5e-4)  # of more than 100
    export_folder(run, tmp_path / "out")
    there, back = (
        {name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()}
        for path in (cached_gpt2() / "model.safetensors", tmp_path / "out" / "model.safetensors")
    )
    assert all(torch.equal(back[name], there[name]) for name in back)


# ------------------------------------------------------------------------------ what is refused


def without(name):
    return lambda tensors: tensors.pop(name)


def replaced(name, change):
    def act(tensors):
        tensors[name] = change(tensors[name]).contiguous()

    return act


def more(name, tensor):
    return lambda tensors: tensors.update({name: tensor})


def renamed(old, new):
    return lambda tensors: tensors.update({new: tensors.pop(old)})


def not_finite(tensor):
    return tensor.clone().fill_(float("nan"))


BLOCK = "transformer.h.1"
BROKEN = {
    "no embedding": without("transformer.wte.weight"),
    "no positions": without("transformer.wpe.weight"),
    "no bias": without(f"{BLOCK}.attn.c_attn.bias"),
    "no matrix": without(f"{BLOCK}.mlp.c_proj.weight"),
    "no norm": without("transformer.ln_f.bias"),
    "a third layer": more("transformer.h.2.ln_1.weight", torch.ones(21)),
    "a stranger": more("transformer.wte.scale", torch.ones(1)),
    "a tied head that is another": more("lm_head.weight", torch.ones(300, 21)),
    "an adapter": more("base_model.model.lora_A.weight", torch.ones(2, 21)),
    "a misspelt name": renamed(f"{BLOCK}.ln_1.weight", f"{BLOCK}.ln1.weight"),
    "separate queries": renamed(f"{BLOCK}.attn.c_attn.weight", f"{BLOCK}.attn.q.weight"),
    "turned round": replaced(f"{BLOCK}.attn.c_attn.weight", lambda x: x.T),
    "a row too few": replaced("transformer.wte.weight", lambda x: x[:-1]),
    "a position too many": replaced("transformer.wpe.weight", lambda x: torch.cat([x, x[:1]])),
    "a wider layer": replaced(f"{BLOCK}.mlp.c_fc.bias", lambda x: torch.cat([x, x])),
    "one dimension more": replaced("transformer.ln_f.weight", lambda x: x[None]),
    "whole numbers": replaced(f"{BLOCK}.attn.c_proj.weight", lambda x: x.long()),
    "yes or no": replaced("transformer.ln_f.weight", lambda x: x > 0),
    "not a number": replaced(f"{BLOCK}.mlp.c_fc.weight", not_finite),
    "infinite": replaced("transformer.wpe.weight", lambda x: x / 0),
    "nothing at all": lambda tensors: tensors.clear(),
}


def refusal(call, *arguments):
    with pytest.raises(UserError) as error:
        call(*arguments)
    message = str(error.value)
    assert "\n" not in message and len(message) < 600
    return message


@pytest.mark.promise("N")
@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN)
def test_broken_weights_are_refused_in_one_line(gpt2_folders, tmp_path, damage):
    folder = shutil.copytree(gpt2_folders / "small", tmp_path / "broken")
    tensors = load_file(folder / "model.safetensors")
    damage(tensors)
    save_file(tensors, folder / "model.safetensors")
    assert str(folder / "model.safetensors") in refusal(import_model, str(folder), tmp_path / "r")
    assert not (tmp_path / "r").exists()


SETTINGS = {
    "model_type": ("llama", "model_type is llama; allowed: gpt2"),
    "activation_function": ("silu", "gelu_new"),
    "layer_norm_epsilon": (1e-6, "1e-05"),
    "scale_attn_by_inverse_layer_idx": (True, "False"),
    "n_head": (4, "21 can't be shared among 4 heads"),
    "n_layer": ("many", "n_layer"),
    "vocab_size": (299, "transformer.wte.weight is 300 × 21, not 299 × 21"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_other_architectures_are_refused_by_name(gpt2_folders, tmp_path, name):
    folder = shutil.copytree(gpt2_folders / "small", tmp_path / "other")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    value, words = SETTINGS[name]
    (folder / "config.json").write_text(json.dumps(config | {name: value}), encoding="utf-8")
    assert words in refusal(import_model, str(folder), tmp_path / "run")


def test_a_tokenizer_that_would_encode_otherwise_is_refused(gpt2_folders, tmp_path):
    good = json.loads((gpt2_folders / "small" / "tokenizer.json").read_text(encoding="utf-8"))
    bad = [json.loads(json.dumps(good)) for _ in range(5)]
    bad[0]["model"]["merges"][3:5] = bad[0]["model"]["merges"][4:2:-1]
    bad[1]["pre_tokenizer"]["add_prefix_space"] = True
    bad[2]["normalizer"] = {"type": "Lowercase"}
    bad[3]["model"]["merges"].pop()
    bad[4]["pre_tokenizer"] = {"type": "Whitespace"}
    theirs_and_ours.from_json(good)
    for content in bad:
        with pytest.raises(ValueError, match=r"merge|cuts|normalisation"):
            theirs_and_ours.from_json(content)


HALF = ["config.json", "model.safetensors", "tokenizer.json", "vocab.json", "merges.txt"]


@pytest.mark.parametrize("name", HALF)
@pytest.mark.parametrize("damage", ["gone", "empty", "half", "a list", "no text"])
def test_a_folder_that_arrived_half_is_one_line_and_leaves_nothing(
    gpt2_folders, tmp_path, name, damage
):
    folder = shutil.copytree(gpt2_folders / "small", tmp_path / "half")
    if name in ("vocab.json", "merges.txt"):
        theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        theirs.model.save(str(folder))
        (folder / "tokenizer.json").unlink()
    path = folder / name
    data = path.read_bytes()
    found = {"empty": b"", "half": data[: len(data) // 2], "a list": b"[]", "no text": b"\xff{"}
    path.unlink() if damage == "gone" else path.write_bytes(found[damage])
    if name == "tokenizer.json" and damage == "gone":
        path = folder / "merges.txt"
    line = refusal(import_model, str(folder), tmp_path / "runs" / "mine")
    assert line.startswith(f"{path}: ") or (name == "merges.txt" and damage != "gone"), line
    assert not (tmp_path / "runs").exists()


def test_pickles_and_what_is_not_there_are_refused(gpt2_folders, tmp_path):
    folder = shutil.copytree(gpt2_folders / "small", tmp_path / "pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    run = tmp_path / "run"
    assert "save_pretrained" in refusal(import_model, str(folder), run)
    assert "docs/interop.md" in refusal(import_model, "out/ckpt.pt", run)
    assert "hub" in refusal(import_model, "nobody/has-this", run)
    assert "no such folder" in refusal(import_model, "not a/name/at all", run)
    assert "safetensors" in refusal(import_model, "missing.safetensors", run)
    for name in ("config.json", "tokenizer.json"):  # not asked for on the hub
        assert "is a file; give the folder" in refusal(import_model, str(folder / name), run)
    small = str(gpt2_folders / "small")
    assert "--tokenizer: is for nanoGPT" in refusal(import_model, small, run, "byte")
    assert "--characters: is for" in refusal(import_model, small, run, None, tmp_path / "a.txt")
    own = saved_run(tmp_path / "own", KINDS["byte"])
    assert "is a run already" in refusal(import_model, str(own.run_dir), run)
    (folder / "pytorch_model.bin").rename(folder / "model-00001-of-00002.safetensors")
    assert "max_shard_size" in refusal(import_model, str(folder), run)
    run.mkdir()
    (run / "note.txt").write_text("mine", encoding="utf-8")
    assert "is there already" in refusal(import_model, str(gpt2_folders / "small"), run)


# ------------------------------------------------------------------------------ out


RUNS = {
    "GPT-2, no biases": EVERYTHING | {"bias": False, "tie_embeddings": False},
    "GPT-2, few heads": EVERYTHING | {"first_layer_heads": 1, "activation": "relu2"},
    "GPT-NeoX": {"positions": "rotary", "qk_norm": False, "bias": True, "activation": "gelu"},
    "GPT-NeoX, untied": {"positions": "rotary", "qk_norm": False, "tie_embeddings": False},
    "Apertus, pruned": {"positions": "rotary", "qk_norm": True, "pruned": ["L1H1"]},
    "Apertus, untied": {"positions": "rotary", "qk_norm": True, "tie_embeddings": False},
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_go_out_as_an_architecture_that_computes_the_same(tmp_path, name):
    run = saved_run(tmp_path / "run", KINDS["bpe"], **RUNS[name])
    assert f" as {name.partition(',')[0]};" in export_folder(run, tmp_path / "out")
    require_same_function(run, tmp_path / "out", "The red dog’s")


def test_the_default_run_goes_out(tmp_path):
    """Its settings and vocabulary; a trained one is too slow to make here."""
    tokenizer = Tokenizer.word(spelling.vocabulary())
    run = saved_run(tmp_path / "run", tokenizer, load_config(None))
    export_folder(run, tmp_path / "out")
    require_same_function(run, tmp_path / "out", "\nOne day Lily met Tom.")


@pytest.mark.nightly
def test_the_trained_default_run_goes_out(tmp_path):
    done = run_script("train.py", cwd=tmp_path, timeout=1800)
    assert done.returncode == 0, done.stderr
    run = load_run(tmp_path / "runs" / "stories-1")
    export_folder(run, tmp_path / "out")
    for start in ("One day Lily met Tom.", "One day", "Once", "Tom has a red ball.", "The dog", ""):
        require_same_function(run, tmp_path / "out", "\n" + start, most=5e-5)  # of up to 28


@pytest.mark.parametrize("tied", [True, False])
def test_a_run_goes_out_and_comes_back_with_the_same_weights(tmp_path, tied):
    ours = saved_run(tmp_path / "run", KINDS["bpe"], **EVERYTHING | {"tie_embeddings": tied})
    export_folder(ours, tmp_path / "out")
    import_model(str(tmp_path / "out"), tmp_path / "back")
    back = load_run(tmp_path / "back")
    there, here = ours.model.state_dict(), back.model.state_dict()
    assert there.keys() == here.keys() and all(torch.equal(there[n], here[n]) for n in there)
    assert (back.model.head.weight is back.model.token_embedding.weight) == tied
    assert back.config.model == ours.config.model
    assert back.tokenizer.fingerprint == ours.tokenizer.fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_every_tokenizer_goes_out_and_comes_back(tmp_path, kind):
    ours = KINDS[kind]
    content = theirs_and_ours.to_json(ours)
    assert theirs_and_ours.from_json(content).fingerprint == ours.fingerprint
    export_folder(saved_run(tmp_path / "run", ours, **EVERYTHING), tmp_path / "out")
    _, theirs = load_theirs(tmp_path / "out")
    known = sorted({token.decode() for token in ours.tokens}) if kind == "char" else None
    texts = st.text(known, max_size=60) if known else st.text(max_size=40)
    texts |= st.lists(st.sampled_from(TEXT.split(" ")), max_size=9).map(" ".join)

    @given(texts)
    @settings(max_examples=100)
    def same(text):
        ids = theirs(text).input_ids
        assert ids == ours.encode(text)
        assert theirs.decode(ids) == ours.decode(ids)

    same()


def test_what_no_architecture_expresses_is_named(tmp_path):
    learned = saved_run(tmp_path / "a", KINDS["byte"], positions="learned", qk_norm=True)
    assert "model.positions=learned" in refusal(export_folder, learned, tmp_path / "x")
    biased = saved_run(tmp_path / "b", KINDS["byte"], qk_norm=True, bias=True)
    assert "model.bias=true" in refusal(export_folder, biased, tmp_path / "x")
    assert "positions=rotary" in refusal(export_gguf, biased, tmp_path / "x.gguf")
    other = saved_run(tmp_path / "c", KINDS["byte"], **EVERYTHING | {"activation": "relu2"})
    assert "model.activation" in refusal(export_gguf, other, tmp_path / "x.gguf")
    words = saved_run(tmp_path / "d", KINDS["word"], **EVERYTHING)
    assert "data.tokenizer" in refusal(export_gguf, words, tmp_path / "x.gguf")
    export_folder(words, tmp_path / "x")
    assert "is there already" in refusal(export_folder, words, tmp_path / "x")
    assert not list(tmp_path.glob("x.*")) and not list(tmp_path.glob(".*"))


def test_the_model_card_tells_of_the_run_and_its_lines_work(tmp_path):
    run = saved_run(tmp_path / "run", KINDS["char"], **EVERYTHING)
    export_folder(run, tmp_path / "out")
    words = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"{run.model.num_parameters:,}" in words and "gone.txt" in words
    code = re.search(r"```python\n(.*?)```", words, re.S)[1]
    exec(code.replace("FOLDER", str(tmp_path / "out")), {})


# ------------------------------------------------------------------------------ nanoGPT


def nanogpt_checkpoint(path, vocab_size, bias):
    """What nanoGPT's train.py saves: nn.Linear matrices, compiled names; and the same as GPT-2."""
    sizes = {"n_layer": 2, "n_head": 3, "n_embd": 21, "vocab_size": vocab_size}
    config = transformers.GPT2Config(**sizes, n_positions=53, activation_function="gelu")
    theirs = decisive(transformers.GPT2LMHeadModel(config))
    state = dict(theirs.state_dict())
    for name in list(state):
        if name.endswith(".bias") and not bias:
            state.pop(name).zero_()
        elif re.search(r"(c_attn|c_proj|c_fc)\.weight", name):
            state[name] = state[name].T.contiguous()
    args = {"n_layer": 2, "n_head": 3, "n_embd": 21, "block_size": 53, "bias": bias}
    args |= {"vocab_size": vocab_size, "dropout": 0.0}
    model = {f"_orig_mod.{name}": tensor for name, tensor in state.items()}
    torch.save({"model": model, "model_args": args, "iter_num": 7, "config": {}}, path)
    return theirs


@pytest.mark.parametrize("bias", [True, False])
def test_nanogpt_comes_in_by_the_two_lines_of_the_page(tmp_path, bias):
    (tmp_path / "out").mkdir()
    theirs = nanogpt_checkpoint(tmp_path / "out" / "ckpt.pt", len(set(TEXT)), bias)
    page = (REPOSITORY / "docs" / "interop.md").read_text(encoding="utf-8")
    lines = re.search(r"```\n(import json, torch;.*?)```", page, re.S)[1]
    assert len(lines.splitlines()) == 2
    subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, check=True)
    (tmp_path / "input.txt").write_text(TEXT, encoding="utf-8")
    weights = str(tmp_path / "nanogpt.safetensors")
    assert "--tokenizer" in refusal(import_model, weights, tmp_path / "run")
    assert "256" in refusal(import_model, weights, tmp_path / "run", "byte")
    import_model(weights, tmp_path / "run", None, tmp_path / "input.txt")
    run = load_run(tmp_path / "run")
    ids = random_ids(run)[:, :53]
    torch.testing.assert_close(run.model(ids), theirs(ids).logits, rtol=0, atol=1e-5)
    assert run.config.model.bias == bias and run.tokenizer.decode([0]) == min(TEXT)


@GPT2S_VOCABULARY
def test_nanogpts_spare_rows_are_left_out(monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(SHARED_DATA / "tiktoken_cache"))
    theirs = nanogpt_checkpoint(tmp_path / "ckpt.pt", 50_304, bias=True)
    saved = torch.load(tmp_path / "ckpt.pt", weights_only=True)
    weights = {name: tensor.clone() for name, tensor in saved["model"].items()}
    notes = {"model_args": json.dumps(saved["model_args"])}
    save_file(weights, tmp_path / "nano.safetensors", notes)
    import_model(str(tmp_path / "nano.safetensors"), tmp_path / "run")
    run, ids = load_run(tmp_path / "run"), torch.tensor([[15496, 995, 50256]])
    expected = theirs(ids).logits[..., :50_257]
    torch.testing.assert_close(run.model(ids), expected, rtol=1e-6, atol=1e-5)


# ------------------------------------------------------------------------------ other formats


def field(reader, name):
    found = reader.get_field(name)
    return None if found is None else found.contents()


@pytest.mark.parametrize(("kind", "tied"), [("char", True), ("byte", False), ("gpt2", True)])
def test_gguf_read_back_has_every_tensor_and_the_tokenizer(tmp_path, kind, tied):
    gguf = pytest.importorskip("gguf", reason="gguf is not installed")
    pairs = theirs_and_ours.from_json(json.loads(learned_by_them(300).to_str()))
    tokenizer = pairs if kind == "gpt2" else KINDS[kind]
    shape = EVERYTHING | {"tie_embeddings": tied, "first_layer_heads": 2}
    run = saved_run(tmp_path / "run", tokenizer, **shape)
    export_gguf(run, tmp_path / "model.gguf")
    reader = gguf.GGUFReader(tmp_path / "model.gguf")
    there = {tensor.name: torch.from_numpy(np.array(tensor.data)) for tensor in reader.tensors}
    known = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GPT2, 2)
    expected = {}  # by the package's own table of transformers' names
    for name, tensor in gpt2.to_gpt2(run.model).items():
        stem, _, last = name.rpartition(".")
        turned = tensor.T if last == "weight" and gguf_matrix(stem) else tensor
        expected[f"{known.get_name(stem)}.{last}"] = turned
    assert there.keys() == expected.keys()
    assert all(torch.equal(there[name], expected[name]) for name in expected)
    assert field(reader, "general.architecture") == "gpt2"
    assert field(reader, "gpt2.attention.head_count") == 3
    assert field(reader, "gpt2.context_length") == 211
    names = field(reader, "tokenizer.ggml.tokens")
    assert [theirs_and_ours.unspelled(name) for name in names] == tokenizer.tokens
    merges = [line.split(" ") for line in field(reader, "tokenizer.ggml.merges")]
    assert merges  # without any, llama.cpp does not load the file
    require_same_ids_by_merges(tokenizer, names, merges)


def gguf_matrix(stem):
    return stem.endswith(("c_attn", "c_proj", "c_fc"))


def require_same_ids_by_merges(tokenizer, names, merges):
    """Encodes as llama.cpp does: GPT-2's cuts, then merges, whether the parts are tokens or not."""
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    text = TEXT[:300] + ("né €’s" if tokenizer.kind != "gpt2" else "")
    cuts = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    found = []
    for piece, _ in cuts:
        parts = list(piece)
        while True:
            pairs = [(ranks[p], at) for at, p in enumerate(zip(parts, parts[1:])) if p in ranks]  # noqa: B905
            if not pairs:
                break
            _, at = min(pairs)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        found += [names.index(part) for part in parts]
    assert found == tokenizer.encode(text)


@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_onnx_computes_the_same_for_every_length(tmp_path, positions):
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    run = saved_run(tmp_path / "run", KINDS["char"], positions=positions, first_layer_heads=1)
    export_onnx(run, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for batch, length in ((1, 1), (1, 2), (3, 7), (2, 211)):
        ids = torch.randint(run.model.vocab_size, (batch, length))
        (logits,) = session.run(None, {"ids": ids.numpy()})
        torch.testing.assert_close(torch.from_numpy(logits), run.model(ids), rtol=0, atol=1e-4)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "model.tokenizer.json"))
    assert theirs.encode(TEXT).ids == run.tokenizer.encode(TEXT)
    (tmp_path / "model.onnx").unlink()
    assert "model.tokenizer.json: is there" in refusal(export_onnx, run, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


# ------------------------------------------------------------------------------ other tools


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # files it leaves open
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_bertviz_draws_our_attention(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bertviz = pytest.importorskip("bertviz", reason="bertviz is not installed")
    run = saved_run(tmp_path / "run", KINDS["word"])
    attention, tokens = viewers.for_bertviz(run, "The red dog ran")
    expected = capture_attention(run.model, run.tokenizer.encode("The red dog ran"))
    for view in (bertviz.head_view, bertviz.model_view):
        page = view(attention, tokens, html_action="return").data
        drawn = json.loads(re.search(r'"attn": (\[.*?\]), "left_text"', page)[1])
        weights = torch.tensor(drawn)  # (L, H, T, T)
        torch.testing.assert_close(weights, expected[:, 0].cpu(), rtol=0, atol=1e-6)
        assert json.dumps("·dog") in page
    few = saved_run(tmp_path / "few", KINDS["word"], first_layer_heads=1)
    assert "layer 0" in refusal(viewers.for_bertviz, few, "The red dog")


def test_transformer_lens_takes_our_weights(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("transformer_lens", reason="transformer-lens is not installed")
        from transformer_lens.model_bridge.sources import build_bridge_from_module

        run = saved_run(tmp_path / "run", KINDS["char"], **EVERYTHING | {"first_layer_heads": 2})
        export_folder(run, tmp_path / "out")
        theirs = transformers.AutoModelForCausalLM.from_pretrained(
            tmp_path / "out", attn_implementation="eager"
        )
        bridge = build_bridge_from_module(theirs, "GPT2LMHeadModel", hf_config=theirs.config)
        ids = random_ids(run)
        logits, cache = bridge.run_with_cache(ids)
    torch.testing.assert_close(run.model(ids), logits, rtol=0, atol=1e-5)
    ours = capture_attention(run.model, ids)
    there = torch.stack([cache["pattern", layer] for layer in range(2)])
    torch.testing.assert_close(ours[1], there[1], rtol=0, atol=1e-5)
    torch.testing.assert_close(ours[0, :, :2], there[0, :, :2], rtol=0, atol=1e-5)


# ------------------------------------------------------------------------------ as a user


def test_an_imported_model_writes_is_inspected_and_explored(gpt2_folders, tmp_path):
    def run(script, *words):
        done = run_script(script, *words, cwd=tmp_path, env={"HF_HUB_OFFLINE": "1"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    folder = shutil.copytree(gpt2_folders / "small", tmp_path / "short")  # soon looked at
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.wpe.weight"] = tensors["transformer.wpe.weight"][:30].contiguous()
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"n_positions": 30}), encoding="utf-8")
    assert "runs/short-1" in run("convert.py", "import", "short")
    assert run("generate.py", "--prompt", "The", "--num-samples", "1", "--max-new-tokens", "9")
    assert "L1H2" in run("inspect_heads.py", "--text", "The red dog saw the red dog")
    run("explore.py", "--fast")
    assert (tmp_path / "runs" / "short-1" / "explorer.html").stat().st_size > 100_000
    assert "as GPT-2" in run("convert.py", "export", "newest", "out")


def test_the_recipe_fine_tunes_gpt2(gpt2_folders, tmp_path):
    """As shipped, but for a smaller context and a few steps: it gains, and hardly moves."""
    import_model(str(gpt2_folders / "small"), tmp_path / "runs" / "gpt2")
    (tmp_path / "my.txt").write_text(TEXT * 3, encoding="utf-8")
    recipe = str(REPOSITORY / "configs" / "gpt2_finetune.yaml")
    words = ["context_length=64", "max_steps=8", "eval_interval=1", "log_interval=1"]
    done = run_script("train.py", recipe, "data.path=my.txt", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    losses = [float(loss) for loss in re.findall(r"step \d+: .*val loss ([\d.]+)", done.stdout)]
    assert len(losses) == 8 and losses[-1] < losses[0]
    before, run = load_run(tmp_path / "runs" / "gpt2"), load_run(tmp_path / "runs/gpt2_finetune-1")
    assert run.config.model.num_heads == 3 and run.config.model.bias
    assert run.tokenizer.fingerprint == before.tokenizer.fingerprint
    for name, old in before.model.state_dict().items():
        new = run.model.state_dict()[name]
        assert not torch.equal(new, old[: len(new)])
        torch.testing.assert_close(new, old[: len(new)], rtol=0, atol=1e-3)
    assert generate(run.model, run.tokenizer, "The", SampleConfig(num_samples=2), seed=1)[1]
    assert inspect(run, "The red dog saw the red dog").weights.shape[:2] == (2, 3)


MISSING = [
    ("huggingface_hub", ["import", "somebody/something"], "hf"),
    ("gguf", ["export", "RUN", "x.gguf"], "export"),
    ("onnxscript", ["export", "RUN", "x.onnx"], "export"),
]


@pytest.mark.parametrize(("package", "words", "extra"), MISSING)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    tmp_path, package, words, extra
):
    saved_run(tmp_path / "RUN", KINDS["byte"], **EVERYTHING)
    code = (
        f"import sys, runpy; sys.modules[{package!r}] = None; sys.argv = ['convert.py', *{words}]\n"
        f"runpy.run_path({str(REPOSITORY / 'scripts' / 'convert.py')!r}, run_name='__main__')"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert package in line and f"pip install -c constraints.txt -e '.[{extra}]'" in line
    assert {path.name for path in tmp_path.iterdir()} == {"RUN"}


@pytest.mark.parametrize(
    "words",
    [[], ["import"], ["export", "nowhere", "out"], ["export", "x.pt", "out"]]
    + [["export", "RUN", "model.bin"], ["export", "RUN", "out.keras"], ["export", "RUN", "x.GGUF"]]
    + [["import", "gpt2", "run", "--tokenizer", "words"]]
    + [["import", "a.safetensors", "--tokenizer=byte", "--characters=a.txt"]],
)
def test_mistakes_are_one_line_and_need_no_pytorch(tmp_path, words):
    code = (
        f"import sys, runpy; sys.modules['torch'] = None; sys.argv = ['convert.py', *{words}]\n"
        f"runpy.run_path({str(REPOSITORY / 'scripts' / 'convert.py')!r}, run_name='__main__')"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (2, 3) and len(done.stderr.splitlines()) == 1, done.stderr
