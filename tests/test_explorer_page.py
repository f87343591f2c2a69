"""The explorer as people meet it: one file from disk, in a real browser, without a network."""

import base64
import re

import numpy as np
import pytest
import torch
from browser import Watched, opened_browser
from conftest import REPOSITORY, SHARED_DATA, TEXT, run_script

from minigpt import run_directory, trainer
from minigpt.checkpoint import load_run
from minigpt.command_line import load_config
from minigpt.explorer import build, contents
from minigpt.explorer.bundle import page as page_of
from minigpt.heads import history, inspection
from minigpt.heads.changing import replacing
from minigpt.stories import corpus as story_corpus
from minigpt.text import open_text

VIEWS = ("findings", "read", "heads", "write", "off", "inside", "training", "method")
QUICK = ["train.max_steps=60", "train.eval_interval=30", "train.sample_interval=30", "device=cpu"]
SMALL = [
    *QUICK,
    "train.max_steps=200",
    "model.num_layers=2",
    "model.embed_dim=32",
    "model.context_length=48",
]
RUNS = {
    "stories": QUICK,
    "char": [*SMALL, "data.tokenizer=char", "model.positions=learned", "model.bias=true"],
    "bpe": [*SMALL, "data.tokenizer=bpe", "data.vocab_size=300", "model.tie_embeddings=false"],
}


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """For each kind of run its folder with a page in it; few stories, so that it takes seconds."""
    folder = tmp_path_factory.mktemp("runs")
    text = folder / "text.txt"
    shakespeare = SHARED_DATA / "tinyshakespeare.txt"
    text.write_text(shakespeare.read_text()[:40_000] if shakespeare.exists() else 4 * TEXT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story_corpus, "NUM_STORIES", {"train": 300, "val": 20})
        patch.setattr(inspection, "FEW_STORIES", 96)
        for name, settings in RUNS.items():
            path = [] if name == "stories" else [f"data.path={text}"]
            make(folder, name, load_config(None, [*settings, *path]))
    return folder


def make(folder, name, config):
    opened = story_corpus.open_stories if name == "stories" else open_text
    corpus = opened(config, folder / "cache")
    run_dir = folder / name
    run_directory.start(run_dir, config, corpus)
    observers = [history.Recorder(run_dir, config)] if name == "stories" else []
    trainer.train(config, corpus, run_dir, observers=observers)
    build.build(load_run(run_dir), run_dir / "explorer.html", fast=True, full=name == "bpe")


@pytest.fixture
def watched(browser):
    watched = Watched(browser, viewport={"width": 1000, "height": 800})
    yield watched
    watched.context.close()


def explorer(made, name="stories"):
    return made / name / "explorer.html"


def assert_quiet(watched):
    assert watched.said == []
    assert all(url.startswith("file://") for url in watched.asked_for), watched.asked_for


# ------------------------------------------------------------------------------ every run


@pytest.mark.parametrize("name", RUNS)
def test_it_opens_from_disk_says_that_it_computes_as_pytorch_and_asks_for_nothing(
    made, watched, name
):
    page = watched.open(explorer(made, name))
    assert page.inner_text("#check").startswith("✓ Computes as PyTorch does")
    for view in VIEWS:
        watched.go(view)
        assert page.inner_text("h2") == page.inner_text("nav a[aria-current]")
        assert page.inner_text(".lead").endswith((".", "back."))
        assert page.title().startswith(name)
    assert_quiet(watched)


@pytest.mark.parametrize("name", RUNS)
def test_the_likeliest_text_is_the_one_that_python_writes(made, watched, name):
    page = watched.open(explorer(made, name), "write")
    prompt = "One day" if name == "stories" else "The"
    tokens = write(page, prompt=prompt, temperature=0, length=100)
    assert len(tokens) == 100
    arguments = ["--prompt", prompt, "--temperature=0", "--max-new-tokens=100"]
    arguments.append("--num-samples=1")
    done = run_script("generate.py", str(made / name), *arguments, cwd=made)
    assert done.returncode == 0, done.stderr
    assert done.stdout == prompt + load_run(made / name).tokenizer.decode(tokens) + "\n"
    assert_quiet(watched)


def write(page, **fields):
    """Fills the form, writes, and returns the ids of what was written."""
    for name, value in fields.items():
        page.fill(f"#write-{name}", str(value))
    page.eval_on_selector("[data-done], main > div", "(desk) => delete desk.dataset.done")
    page.click("#write")
    page.wait_for_selector(f"[data-done='{fields['length']}']", state="attached")
    return written(page)


def written(page):
    script = "(words) => words.map((word) => Number(word.dataset.id))"
    return page.eval_on_selector_all(".written .word", script)


@pytest.mark.parametrize("by", ["mean", "zero"])
@pytest.mark.parametrize("name", RUNS)
def test_a_head_switched_off_changes_probabilities_as_in_pytorch(made, watched, name, by):
    page = watched.open(explorer(made, name), f"off?by={by}&text=0&word=9")
    before = shares(page, "after")
    page.click("button[data-head=L1H1]")
    assert page.get_attribute("button[data-head=L1H1]", "aria-pressed") == "true"
    after = shares(page, "after")
    assert max(abs(after[id] - before[id]) for id in after if id in before) > 1e-5
    run = load_run(made / name)
    told = told_to(made, name)
    means = torch.from_numpy(np.frombuffer(base64.b64decode(told["means"]), "<f4").copy())
    shape = run.config.model.num_layers, run.config.model.num_heads, -1
    instead = means.view(shape)[1, 1] if by == "mean" else torch.zeros(run.config.model.head_dim)
    ids = torch.tensor([told["texts"][0]["ids"]])
    with torch.no_grad(), replacing(run.model.eval(), {(1, 1): instead}):
        expected = run.model(ids)[0, 9].softmax(-1)
    assert after == {id: pytest.approx(float(expected[id]), abs=1e-3) for id in after}
    assert page.inner_text(".sentence").startswith("Without L1H1: ")
    page.click("text=Switch all back on")
    assert shares(page, "after") == before
    assert_quiet(watched)


def shares(page, when):
    script = (
        f"(cells) => cells.map((cell) => [Number(cell.dataset.{when}), Number(cell.dataset.share)])"
    )
    return dict(page.eval_on_selector_all(f"[data-{when}]", script))


def told_to(made, name):
    """What the page of a run was told."""
    import json

    html = explorer(made, name).read_text(encoding="utf-8")
    found = re.search(r'id="contents">(.*?)</script>', html, re.DOTALL)
    return json.loads(found[1])


# ------------------------------------------------------------------------------ reading


def test_a_typed_text_is_read_along_and_words_and_heads_are_picked_by_keyboard(made, watched):
    page = watched.open(explorer(made), "read")
    page.select_option("#text", "own")
    page.type("#own", "One day Lily Reed met Tom Fox. Little Lily")
    words = page.eval_on_selector_all(".words .word", "(all) => all.map((w) => w.textContent)")
    assert words[1:] == ["One", "day", "Lily", "Reed", "met", "Tom", "Fox", ".", "Little", "Lily"]
    page.focus(".words .word[aria-pressed=true]")
    assert chosen(page) == "Lily"
    for key, word in (("ArrowLeft", "Little"), ("ArrowLeft", "."), ("Home", "⏎"), ("End", "Lily")):
        page.keyboard.press(key)
        assert chosen(page) == word == page.evaluate("document.activeElement.textContent")
    head = page.input_value("#head")
    page.keyboard.press("ArrowUp" if head.endswith("H3") else "ArrowDown")
    assert page.input_value("#head") != head
    said = page.inner_text("#said")
    assert said == page.inner_text(".sentence")
    assert said.startswith(f"{page.input_value('#head')} at “Lily” (word 11 of 11) looks at ")
    assert_quiet(watched)


def chosen(page):
    return page.inner_text(".words .word[aria-pressed=true]")


def test_what_is_shown_are_the_models_own_weights(made, watched):
    from minigpt.heads.capture import capture_attention

    page = watched.open(explorer(made), "read?look=raw&head=L2H1&word=12")
    ids = told_to(made, "stories")["texts"][0]["ids"]
    row = capture_attention(load_run(made / "stories").model, ids)[2, 0, 1, 12]
    best = int(row.argmax())
    cells = page.eval_on_selector_all(".columns table", "(all) => all[0].rows[1].innerText")
    assert f"{best + 1}" in cells.split()
    assert f"{round(100 * float(row[best]))}" in cells.split("\t")[-1]


def test_questions_of_a_story_lead_to_their_words_and_frame_the_right_ones(made, watched):
    page = watched.open(explorer(made), "read?text=0")
    chips = page.query_selector_all(".chip")
    assert len(chips) > 2
    text = told_to(made, "stories")["texts"][0]
    for at in range(len(chips)):
        page.locator(".chip").nth(at).click()
        query = int(page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('word')"))
        gold = {
            place for one in text["questions"] if one["query"] == query for place in one["gold"]
        }
        script = "(all) => all.map((w, at) => (w.classList.contains('gold') ? at : -1))"
        framed = page.eval_on_selector_all(".words .word", script)
        assert {at for at in framed if at >= 0} == gold


def test_characters_that_the_model_does_not_know_are_told_and_left_out(made, watched):
    page = watched.open(explorer(made, "char"), "read?text=own&own=The%20%E2%82%AC%20x")
    assert "€" in page.inner_text(".own .hint")
    words = page.eval_on_selector_all(".words .word", "(all) => all.map((w) => w.textContent)")
    assert "".join(words) == "The··x"


def test_a_text_longer_than_the_model_reads_is_cut_and_that_is_said(made, watched):
    page = watched.open(explorer(made, "char"), "read?text=own&own=" + 40 * "the%20")
    assert "112 are left out" in page.inner_text(".own .hint")
    assert len(page.query_selector_all(".words .word")) == 48


def test_the_address_tells_where_one_stands_and_going_back_works(made, watched):
    page = watched.open(explorer(made), "read?text=1&head=L1H2&word=5")
    assert (page.input_value("#text"), page.input_value("#head")) == ("1", "L1H2")
    page.click("nav a >> text=Heads")
    assert page.inner_text(".card h3").split()[0] == "L1H2"
    page.click("button[data-head=L0H0]")
    assert "head=L0H0" in page.url
    page.go_back()
    page.wait_for_selector(".words")
    assert page.input_value("#head") == "L1H2"
    for nonsense in (
        "nowhere",
        "read?text=99&word=-4&head=L9H9",
        "off?off=L9H9,x&by=z",
        "read?word=x",
    ):
        watched.go(nonsense if nonsense != "nowhere" else "findings")
        assert page.inner_text("h2")
    assert_quiet(watched)


# ------------------------------------------------------------------------------ writing


def test_a_seed_writes_the_same_again_and_another_candidate_goes_another_way(made, watched):
    page = watched.open(explorer(made), "write")
    first = write(page, prompt="One day", temperature=1, min_p="", seed=3, length=20)
    assert write(page, seed=3, length=20) == first
    assert write(page, seed=4, length=20) != first
    page.click(".written [data-step='4']")
    take = page.locator("button[aria-label^=take]").first
    label = take.get_attribute("aria-label").removeprefix("take it: “").removesuffix("”")
    before = written(page)
    take.click()
    page.wait_for_selector("[data-done='20']", state="attached")
    assert page.inner_text(".written [data-step='4']") == label
    assert written(page)[:4] == before[:4] and written(page)[4] != before[4]


# ------------------------------------------------------------------------------ inside


def test_the_arithmetic_of_a_head_adds_up(made, watched):
    page = watched.open(explorer(made), "inside?head=L1H1")
    page.click("text=“The dog fetched the ball”")
    weights = cells(page, "Attention weights", 3)
    shown = [float(w) for w in weights if re.fullmatch(r"[\d.]+", w)]
    assert len(shown) >= 5
    scores = [float(s.replace("−", "-")) for s in cells(page, "Scores at", 3)]
    page.click("summary >> text=All >> nth=0")
    everything = page.locator("details[open] table").first
    scores = [
        float(row.split("\t")[-1].replace("−", "-"))
        for row in everything.inner_text().splitlines()[2:]
    ]
    expected = torch.tensor(scores).softmax(0).sort(descending=True).values[: len(shown)]
    assert torch.allclose(torch.tensor(shown).sort(descending=True).values, expected, atol=0.01)


def cells(page, caption, column):
    script = """(tables, [caption, column]) => {
      const table = tables.find((one) => one.caption.textContent.startsWith(caption));
      return Array.from(table.tBodies[0].rows, (row) => row.cells[column].textContent);
    }"""
    return page.eval_on_selector_all("table", script, [caption, column])


# ------------------------------------------------------------------------------ findings


def test_every_finding_leads_to_its_evidence(made, watched):
    page = watched.open(explorer(made))
    links = page.eval_on_selector_all(".findings a", "(all) => all.map((a) => a.hash)")
    assert 3 <= len(links) <= 6
    for link in links:
        watched.go(link.removeprefix("#"))
        assert page.inner_text("h2") != "Findings"
    assert_quiet(watched)


def test_a_run_on_text_says_what_it_cannot_tell(made, watched):
    page = watched.open(explorer(made, "char"))
    assert "nobody knows" in page.inner_text(".note")
    watched.go("heads")
    assert "only be told of models trained on stories" in page.inner_text(".card .note")
    watched.go("training")
    assert "counting pairs" in page.inner_text("figure .legend")


# ------------------------------------------------------------------------------ large models


def test_long_texts_and_twelve_times_twelve_heads_stay_usable(made, watched, tmp_path):
    run = load_run(made / "stories")
    look = inspection.inspect(run, fast=True, text="One day Lily Reed met Tom Fox.")
    told = contents.contents(look)
    many = [{**told["cards"][0], "name": f"L{i}H{j}", "layer": i, "head": j}
            for i in range(12) for j in range(12)]  # fmt: skip
    model = twelve_by_twelve(run)
    told |= {"cards": many, "model": contents.model_of(model), "first": "L0H0"}
    told |= {"means": contents.packed(torch.zeros(12, 12, 8))}
    told |= {"texts": [{"ids": (100 * told["texts"][0]["ids"])[:128], "questions": []}]}
    told |= {"reference": contents.reference(model, told["texts"][0]["ids"])}
    path = tmp_path / "large.html"
    path.write_text(page_of(told, contents.weights(model, False)), encoding="utf-8")
    page = watched.open(path, "read?head=L11H11")
    assert len(page.query_selector_all(".words .word")) == 128
    assert len(page.query_selector_all(".arcs path")) <= 6
    page.click("summary")
    # Drawn once the browser tells that it is unfolded, a little after the click.
    page.wait_for_selector("canvas.heat[width]")
    assert page.eval_on_selector("canvas.heat", "(canvas) => canvas.width") >= 3 * 128
    watched.go("heads")
    assert len(page.query_selector_all("button.head")) == 144
    watched.go("off")
    page.click("button[data-head=L5H7]")
    assert page.inner_text(".sentence").startswith("Without L5H7")
    page.set_viewport_size({"width": 390, "height": 800})
    for view in VIEWS:
        watched.go(view)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{view} is {width} wide"
    assert_quiet(watched)


def twelve_by_twelve(run):
    from dataclasses import replace

    from minigpt.model import GPT

    shape = {"num_layers": 12, "num_heads": 12, "embed_dim": 96, "first_layer_heads": None}
    config = run.config.model_copy(update={"model": run.config.model.model_copy(update=shape)})
    torch.manual_seed(0)
    return replace(run, config=config, model=GPT(config.model, run.tokenizer.vocab_size).eval())


# ------------------------------------------------------------------------------ for everybody

AXE = REPOSITORY / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CHECK = """async (tags) => {
  document.querySelectorAll("details").forEach((one) => (one.open = true));
  const found = await axe.run({ runOnly: tags, rules: { "target-size": { enabled: true } } });
  return found.violations.map((one) => [one.id, one.nodes.map((node) => node.html)]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["stories", "char"])
def test_nothing_bars_people_from_any_view(made, browser, name, width, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm install")
    size = {"width": width, "height": 800}
    watched = Watched(browser, viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page = watched.open(explorer(made, name))
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for view in (*VIEWS, "read?text=own&own=The%20dog", "off?off=L0H0,L1H1"):
        watched.go(view)
        if view == "write":
            write(page, temperature=2, min_p="", length=8)
            page.click(".written [data-step='3']")
        assert page.evaluate(CHECK, RULES) == [], view
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert_quiet(watched)
    watched.context.close()


def test_everything_can_be_reached_by_keyboard(made, watched):
    page = watched.open(explorer(made), "read")
    script = """() => {
      const reached = document.activeElement;
      const { outlineStyle } = getComputedStyle(reached);
      return [reached.id || reached.className || reached.tagName, outlineStyle];
    }"""
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(script)
        if name in seen[:1]:
            break  # all the way round
        assert outline != "none" or name == "BODY", f"{name} shows no focus"
        seen.append(name)
    assert {"skip", "text", "head"} <= set(seen)
    assert sum(name.startswith("word") for name in seen) == 1  # arrow keys do the rest
    assert seen.index("skip") < seen.index("text") < seen.index("head")


# ------------------------------------------------------------------------------ the command


def test_the_command_makes_a_page_and_says_what_is_next(tiny_run, tmp_path):
    out = tmp_path / "a page.html"
    done = run_script("explore.py", str(tiny_run), "--out", str(out), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"  {out.resolve().as_uri()}"
    assert out.stat().st_size < 300_000


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["nowhere"], 3, "holds no checkpoint"),
        (["RUN", "--checkpoint=999"], 3, "no checkpoint '999'"),
        (["RUN@999"], 3, "no checkpoint '999'"),
        (["RUN", "--out=."], 3, "."),
        (["RUN", "--out=a file/page.html"], 3, "a file"),
    ],
)
def test_mistakes_are_one_line(tiny_run, tmp_path, arguments, code, words):
    (tmp_path / "a file").touch()
    arguments = [one.replace("RUN", str(tiny_run)) for one in arguments]
    done = run_script("explore.py", *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"a file"}
