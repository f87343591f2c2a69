"""What a model's page on the hub says: what it is, what it learned from, how to use it.

run -> README.md
"""

from minigpt.checkpoint import Run

TEMPLATE = """\
---
library_name: transformers
pipeline_tag: text-generation
tags: [minigpt]
---

# {name}

A GPT, {origin}, exported by minigpt as {architecture}: {parameters:,}
parameters, {layers} layers of {heads} heads, {width} numbers per token, a context of {context}
tokens, a vocabulary of {tokens:,} tokens ({tokenizer}).{loss}

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("FOLDER")
tokenizer = AutoTokenizer.from_pretrained("FOLDER")
ids = tokenizer({prompt!r}, return_tensors="pt", return_token_type_ids=False)
print(tokenizer.decode(model.generate(**ids, max_new_tokens={new})[0]))
```

It computes what the run that it was made from computes, in float32 to within rounding. It has
learned from what is named above and from nothing else that is known here; do not rely on what it
writes.
"""


def card(run: Run, architecture: str) -> str:
    """A model card with what the run's directory tells."""
    model = run.config.model
    start = run.tokenizer.decode([run.tokenizer.start_id])
    loss = run.state.val_loss
    measured = f" Step {run.step:,}; validation loss {loss:.4f} nats per token." if loss else ""
    return TEMPLATE.format(
        name=run.run_dir.resolve().name,
        origin=origin(run),
        architecture=architecture,
        parameters=run.model.num_parameters,
        layers=model.num_layers,
        heads=model.num_heads,
        width=model.embed_dim,
        context=model.context_length,
        tokens=run.tokenizer.vocab_size,
        tokenizer=run.tokenizer.kind,
        loss=measured,
        prompt=run.config.sample.prompt or start,
        new=min(model.context_length - 1, 100),
    )


def origin(run: Run) -> str:
    """Where the weights come from, as far as the run's settings tell."""
    data, start = run.config.data, run.config.init_from
    if run.step == 0:
        return str(data.path)  # says that it was imported, and from where
    corpus = "generated stories" if data.source == "stories" else f"a text ({data.path})"
    return f"trained on {corpus}" + (f" from the weights of {start}" if start else "")
