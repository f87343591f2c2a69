"""The explorer for who works by keyboard, listens, or prints."""

import pytest
from browser import Watched, opened_browser
from conftest import run_script

TINY = [
    "train.max_steps=20",
    "train.eval_interval=20",
    "train.sample_interval=20",
    "model.num_layers=2",
    "model.num_heads=2",
    "model.first_layer_heads=2",
    "model.embed_dim=32",
    "device=cpu",
]
FOCUSED = "document.activeElement.value || document.activeElement.textContent"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A page of a model that has learned next to nothing, made as a user makes it."""
    folder = tmp_path_factory.mktemp("stories")
    trained = run_script("train.py", "run_dir=runs/tiny", *TINY, cwd=folder)
    assert trained.returncode == 0, trained.stderr
    arguments = ["runs/tiny", "--fast", "--out=page.html"]
    explored = run_script("explore.py", *arguments, cwd=folder)
    assert explored.returncode == 0, explored.stderr
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


@pytest.fixture
def watched(browser):
    watched = Watched(browser, viewport={"width": 1000, "height": 800})
    yield watched
    assert watched.said == []
    watched.context.close()


def press(page, selector, key):
    """Presses a key where the first that fits has the focus, and tells what has it then."""
    page.locator(selector).first.focus()
    page.keyboard.press(key)
    return page.evaluate(FOCUSED)


# ------------------------------------------------------------------------------ the keyboard


@pytest.mark.parametrize(
    "place, selector, key, then",
    [
        ("read", "input[name=look]:checked", "ArrowRight", "raw"),
        ("read", "button.plain >> text=L1H0", "Enter", "L1H0"),
        ("heads", "button.head[data-head=L1H0]", "Space", "L1H0"),
        ("off", "input[name=by]:checked", "ArrowRight", "zero"),
        ("off", "button.head[data-head=L0H1]", "Enter", "L0H1 off"),
        ("off?off=L0H1", "text=Switch all back on", "Enter", "L1H1"),  # it can't be pressed again
    ],
)
def test_who_presses_a_key_stays_at_its_place(made, watched, place, selector, key, then):
    page = watched.open(made, place)
    assert press(page, selector, key).endswith(then)
    assert page.evaluate("document.activeElement.matches(':focus-visible')")


def test_a_question_that_is_followed_keeps_the_focus(made, watched):
    page = watched.open(made, "read")
    words = page.locator(".chip").first.text_content()
    assert press(page, ".chip", "Enter") == words


def test_arrows_move_the_word_and_the_head_and_the_focus_follows(made, watched):
    page = watched.open(made, "read?word=5&head=L0H1")
    chosen = ".words .word[aria-pressed=true]"
    fifth = page.inner_text(chosen)
    after = press(page, chosen, "ArrowRight")
    assert "word=6" in page.url and after == page.inner_text(chosen)
    assert press(page, chosen, "ArrowLeft") == fifth
    assert press(page, chosen, "ArrowDown") == fifth
    assert page.input_value("#head") == "L1H0"
    assert press(page, chosen, "ArrowUp") == fifth
    assert page.input_value("#head") == "L0H1"


def test_a_chosen_word_moves_no_other_word(made, watched):
    page = watched.open(made, "read?word=5")
    script = "(words) => words.map((word) => word.getBoundingClientRect().left)"
    before = page.eval_on_selector_all(".words .word", script)
    press(page, ".words .word[aria-pressed=true]", "End")
    assert page.eval_on_selector_all(".words .word", script) == before


def test_enter_in_a_field_writes_and_a_candidate_is_taken_by_keyboard(made, watched):
    page = watched.open(made, "write")
    page.fill("#write-length", "6")
    press(page, "#write-prompt", "Enter")
    page.wait_for_selector("[data-done='6']", state="attached")
    press(page, ".written .word[tabindex='0']", "Home")
    press(page, "button[aria-label^=take]", "Enter")
    page.wait_for_function("() => document.activeElement.textContent === 'take it'")


# ------------------------------------------------------------------------------ listening


def test_the_attention_of_a_word_is_said_once_and_not_at_every_letter(made, watched):
    page = watched.open(made, "read?text=own")
    page.evaluate("""() => {
      window.heard = [];
      const said = document.getElementById("said");
      const hear = () => window.heard.push(said.textContent);
      new MutationObserver(hear).observe(said, { childList: true });
    }""")
    page.type("#own", "The dog saw the cat")
    page.wait_for_function("() => window.heard.length > 0")
    assert page.evaluate("window.heard") == [page.inner_text(".sentence")]
    watched.go("heads")
    page.click("button.head[data-head=L1H0]")
    assert page.inner_text("#said").startswith("L1H0: ")
    assert page.locator("main [aria-live]").count() == 0  # else the whole card is read out


# ------------------------------------------------------------------------------ light and paper

# The contrast of the words and of what is under them at the strongest highlight; axe-core can't
# tell it where arcs lie above.
CONTRASTS = """() => {
  const style = getComputedStyle(document.documentElement);
  const light = (name) => {
    const digits = style.getPropertyValue(name).trim().slice(1);
    const parts = [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16) / 255);
    const linear = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const pairs = ["mark", "worse", "better", "panel"].map((name) => ["--ink", `--${name}`]);
  pairs.push(["--soft", "--panel"], ["--on-accent", "--accent"]);
  return pairs.map(([ink, under]) => [ink, under, contrast(light(ink), light(under))]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_are_legible_on_the_strongest_highlight(made, browser, scheme):
    watched = Watched(browser, color_scheme=scheme)
    page = watched.open(made, "read")
    assert all(contrast >= 4.5 for _, _, contrast in page.evaluate(CONTRASTS))
    watched.context.close()


def test_paper_is_white_and_shows_what_is_drawn_as_a_background(made, browser):
    watched = Watched(browser, color_scheme="dark")
    page = watched.open(made, "read")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) != "rgb(255, 255, 255)"
    page.emulate_media(media="print")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    script = "(bar) => getComputedStyle(bar).printColorAdjust"
    assert page.eval_on_selector(".bar .filled", script) == "exact"
    assert not page.is_visible("nav")
    watched.context.close()
