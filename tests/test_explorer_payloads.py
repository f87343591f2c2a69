"""Whatever a token, a name, a text or a setting says, in the explorer it is text, no more."""

import copy
import functools
import json
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
import torch
from browser import Watched, opened_browser

from minigpt.checkpoint import Run, TrainingState
from minigpt.config import Config, DataConfig, ModelConfig
from minigpt.explorer import bundle, contents
from minigpt.heads.capture import capture_attention
from minigpt.heads.inspection import inspect
from minigpt.model import GPT
from minigpt.tokenizer import Tokenizer

pytestmark = pytest.mark.promise("G")
ATTACK = "window.pwned=1"
PAYLOADS = [
    f"</script><script>{ATTACK}</script>",
    f"</SCRIPT ><sCrIpT>{ATTACK}</sCrIpT>",
    f"<!--<script>{ATTACK}</script>",
    f"--><script>{ATTACK}</script>",
    f"<img src=x onerror={ATTACK}>",
    f"<svg/onload={ATTACK}>",
    f"<svg><script>{ATTACK}</script></svg>",
    f'"><body onload="{ATTACK}">',
    f"' onmouseover='{ATTACK}",
    f'" autofocus onfocus="{ATTACK}" x="',
    f"<iframe srcdoc='<script>parent.{ATTACK}</script>'>",
    "<iframe src=http://example.com></iframe>",
    "<link rel=stylesheet href=//example.com/x.css>",
    "<meta http-equiv=refresh content='0;url=http://example.com'>",
    "<base href=http://example.com/>",
    f"<a href='javascript:{ATTACK}'>x</a>",
    f"javascript:{ATTACK}",
    "data:text/html,<script>parent.pwned=1</script>",
    "</style><style>*{display:none!important}",
    "}*{display:none}/*",
    "url(http://example.com/x)",
    "</title></head></body></html>",
    "<![CDATA[<script>]]>",
    f"<template><script>{ATTACK}</script></template>",
    f"<noscript><p title='</noscript><img src=x onerror={ATTACK}>'>",
    "{{SCRIPT}}{{CONTENTS}}{{WEIGHTS}}{{STYLE}}{{POLICY}}",
    r"\1 \g<0> $& $` ${1}",
    f"${{{ATTACK}}}`+{ATTACK}+`",
    f'\\";{ATTACK};//',
    f"\\u003cscript\\u003e{ATTACK}",
    "&lt;b&gt; &amp; &#60;script&#62; &nbsp;",
    "' OR 1=1; \" ` ´ “ ” ‘ ’ « »",
    "\u2028\u2029",
    "\u202e gnissapsert \u202c\u2066x\u2069\u200f",
    "\x00\x01\x07\x08\x0b\x0c\x1b[31m\x7f\x85",
    "\ufeff\u200b\u200d\ufffe\uffff",
    "🙂 👩‍👩‍👧‍👦 e\u0301 ﷽",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "A" * 5000,
    " " * 200,
    "\n\n\n",
]
LONELY = ["\ud83d", "x\udc00y"]  # half characters: they come from names of files, not from tokens


class Elements(HTMLParser):
    """What a browser would see: elements with their attributes, and what scripts hold."""

    def __init__(self, html):
        super().__init__(convert_charrefs=False)
        self.elements, self.inside, self.current = [], {}, None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, sorted(name for name, _ in attributes)))
        self.current = (tag, dict(attributes).get("id"))

    def handle_endtag(self, tag):
        self.current = None

    def handle_data(self, data):
        if self.current:
            self.inside[self.current] = self.inside.get(self.current, "") + data

    def handle_comment(self, data):
        self.elements.append(("comment", data))


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the page of a small byte model is told, and its weights."""
    torch.manual_seed(0)
    shape = {"num_layers": 2, "num_heads": 2, "embed_dim": 8, "context_length": 64}
    return told_of(Tokenizer.byte(), ModelConfig(**shape), tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module", autouse=True)
def read_once():
    """The page's files are the same every time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundle, "one_script", functools.cache(bundle.one_script))
        yield


@pytest.fixture(scope="module")
def plain_elements(told):
    return Elements(bundle.page(*told))


def run_of(tokenizer, shape, folder):
    model = GPT(shape, tokenizer.vocab_size).eval()
    config = Config(data=DataConfig(source="text", path=str(folder / "gone")), model=shape)
    return Run(folder / "run", config, tokenizer, model, TrainingState(step=3))


def told_of(tokenizer, shape, folder, text="A text to look at, twice: a text to look at."):
    run = run_of(tokenizer, shape, folder)
    return contents.contents(inspect(run, text)), contents.weights(run, False)


def put(told, sink, payload):
    """The same contents with a payload where `sink` says."""
    changed = copy.deepcopy(told)
    *path, last = sink
    place = changed
    for step in path:
        place = place[step]
    place[last] = payload
    return changed


SINKS = {
    "run": ("run",),
    "token": ("tokenizer", "tokens", 65),
    "opening": ("opening",),
    "prompt": ("sampling", "prompt"),
    "card's name": ("cards", 1, "name"),
    "card's words": ("cards", 1, "words"),
    "card's kind": ("cards", 1, "kind"),
    "claim": ("cards", 1, "claims"),
    "meaning of a kind": ("legend", "broad", "words"),
    "letter of a kind": ("legend", "broad", "letter"),
    "colour of a kind": ("legend", "broad", "colour"),
    "finding": ("findings", 0, "text"),
    "evidence": ("findings", 0, "evidence"),
    "link": ("findings", 0, "link"),
    "sample": ("training", "samples"),
    "texts": ("measured", "texts"),
    "note": ("measured", "note"),
    "version": ("measured", "torch"),
}
LISTS = {"claim": lambda one: [one], "sample": lambda one: [{"step": 1, "text": one}]}


def placed(told, sink, payload):
    return put(told, SINKS[sink], LISTS.get(sink, lambda one: one)(payload))


# ------------------------------------------------------------------------------ the file


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("payload", PAYLOADS + LONELY, ids=ascii)
def test_it_is_data_in_the_file_and_nothing_else(told, plain_elements, payload, sink):
    plain, weights = told
    changed = placed(plain, sink, payload)
    html = bundle.page(changed, weights)
    html.encode()  # whatever it was, the file can be written
    before, after = plain_elements, Elements(html)
    assert after.elements == before.elements
    assert json.loads(after.inside["script", "contents"]) == changed
    for part in (("script", None), ("style", None), ("script", "weights")):
        assert after.inside[part] == before.inside[part]


def test_nothing_in_the_page_leads_out_of_it():
    for path in bundle.PAGE.rglob("*"):
        if path.is_file():
            source = path.read_text(encoding="utf-8")
            source = source.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
            for word in ("http:", "https:", "//cdn", "fetch(", "XMLHttp", "import(", "innerHTML"):
                assert word not in source, f"{word} in {path.name}"
            for word in ("insertAdjacentHTML", "outerHTML", "document.write", "eval(", "Function("):
                assert word not in source, f"{word} in {path.name}"


# ------------------------------------------------------------------------------ a real browser

VIEWS = ("findings", "read", "heads", "write", "off", "inside", "training", "method")


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.fixture
def watched(browser):
    watched = Watched(browser)
    yield watched
    assert watched.page.evaluate("window.pwned") is None
    assert watched.said == []
    assert all(url.startswith("file://") for url in watched.asked_for)
    watched.context.close()


def opened(watched, told, tmp_path, place=""):
    path = tmp_path / "page.html"
    path.write_text(bundle.page(*told), encoding="utf-8")
    return watched.open(path, place)


@pytest.mark.parametrize("sink", [sink for sink in SINKS if sink not in ("token", "link")])
def test_in_a_browser_it_is_text_wherever_it_stands(watched, told, tmp_path, sink):
    everything = " ".join(PAYLOADS).replace("\x00", "")
    changed = placed(told[0], sink, everything)
    page = opened(watched, (changed, told[1]), tmp_path)
    names = set(page.evaluate("Array.from(document.querySelectorAll('body *'), (e) => e.tagName)"))
    for view in VIEWS:
        watched.go(view)
        names |= set(
            page.evaluate("Array.from(document.querySelectorAll('main *'), (e) => e.tagName)")
        )
    assert not names & {"IMG", "IFRAME", "LINK", "META", "BASE", "OBJECT", "TEMPLATE", "B"}
    assert page.evaluate("getComputedStyle(document.body).display") == "block"


def test_tokens_are_read_and_shown_as_the_text_they_are(watched, tmp_path):
    words = [f" {payload}" for payload in PAYLOADS if payload.strip() and "\x00" not in payload]
    tokenizer = Tokenizer.word(dict.fromkeys(words))
    shape = ModelConfig(num_layers=1, num_heads=1, embed_dim=4, context_length=64)
    told, weights = told_of(tokenizer, shape, tmp_path, "A text.")
    told["texts"] = [{"ids": list(range(256, tokenizer.vocab_size)), "questions": []}]
    page = opened(watched, (told, weights), tmp_path, "read")
    script = "(all) => all.map((one) => one.textContent)"
    shown = page.eval_on_selector_all(".words .word", script)
    assert len(shown) == tokenizer.vocab_size - 256
    for text, word in zip(shown, words, strict=True):
        if word.isascii() and word.isprintable():
            assert text == word[1:].replace(" ", "·")
    for view in VIEWS:
        watched.go(view)
        page.click("#write") if view == "write" else None


def test_half_a_character_and_single_bytes_are_shown_as_bytes(watched, told, tmp_path):
    changed = put(told[0], ("texts",), [{"ids": [0xF0, 0x9F, 65, 0xFF, 0], "questions": []}])
    page = opened(watched, (changed, told[1]), tmp_path, "read")
    shown = page.eval_on_selector_all(".words .word", "(all) => all.map((one) => one.textContent)")
    assert shown == ["\\xf0", "\\x9f", "A", "\\xff", "\\u0000"]


@pytest.mark.parametrize("payload", [*PAYLOADS[:20], "-1", "1e9", "NaN", "99999999999999999999"])
def test_the_address_is_no_way_in(watched, told, tmp_path, payload):
    page = opened(watched, told, tmp_path)
    for view in ("read", "heads", "off", "inside", payload):
        names = ("own", "text", "word", "head", "off", "by", "look", "__proto__", payload[:40])
        query = "&".join(f"{quote(name)}={quote(payload)}" for name in names)
        page.evaluate("(hash) => { location.hash = hash; }", f"{quote(view)}?{query}")
        page.evaluate(
            "(hash) => { location.hash = hash; }", f"{quote(view)}?text=own&own={quote(payload)}"
        )
        assert page.inner_text("h2")


def test_a_huge_text_is_cut_without_a_pause(watched, told, tmp_path):
    page = opened(watched, told, tmp_path, "read?text=own")
    page.evaluate(
        """() => {
          const area = document.getElementById("own");
          area.value = "x".repeat(1000000);
          area.dispatchEvent(new Event("input"));
        }"""
    )
    assert "are left out" in page.inner_text(".own .hint")
    assert len(page.query_selector_all(".words .word")) == 64


@pytest.mark.parametrize(
    "shape",
    [
        {"num_layers": 1, "num_heads": 1, "embed_dim": 2, "context_length": 1},
        {"num_layers": 1, "num_heads": 1, "embed_dim": 1, "positions": "learned"},
        {"num_layers": 2, "num_heads": 3, "embed_dim": 12, "pruned": ["L0H0", "L1H1", "L1H2"]},
    ],
    ids=str,
)
def test_the_smallest_models_have_a_page_too(watched, tmp_path, shape):
    told = told_of(Tokenizer.byte(), ModelConfig(**({"context_length": 16} | shape)), tmp_path)
    page = opened(watched, told, tmp_path)
    for view in VIEWS:
        watched.go(view)
        assert page.inner_text(".lead")


def test_of_a_pruned_model_each_head_shows_its_own_looks(watched, tmp_path):
    shape = ModelConfig(num_layers=1, num_heads=3, embed_dim=12, context_length=16, pruned=["L0H0"])
    run = run_of(Tokenizer.byte(), shape, tmp_path)
    with torch.no_grad():
        for weight in run.model.parameters():
            weight.normal_()
    told = contents.contents(inspect(run, "some text")), contents.weights(run, True)
    page = opened(watched, told, tmp_path)
    looks = capture_attention(run.model, told[0]["texts"][0]["ids"])[0, 0, :, -1]
    for head in (1, 2):
        watched.go(f"read?head=L0H{head}&look=raw&word=8")
        row = page.eval_on_selector(".columns table", "(table) => table.rows[1].innerText")
        assert row.split("\t")[1].strip() == str(int(looks[head].argmax()) + 1)
