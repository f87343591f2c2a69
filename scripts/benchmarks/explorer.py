"""The explorer's page in a browser."""

import argparse
import contextlib
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring import describe, machine
from minigpt.errors import CONFIG, DATA, UserError
from minigpt.saved_runs import newest_run

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STORY = 'One day Lily Reed met Tom Fox. Little Lily has a red ball. She says, "I am Lily'
TYPED = """async (letters) => {
  const area = document.getElementById("own");
  const times = [];
  for (const letter of letters) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const started = performance.now();
    area.value += letter;
    area.dispatchEvent(new Event("input"));
    document.body.offsetHeight; // the page is laid out anew
    times.push(performance.now() - started);
  }
  return times;
}"""


def explorer(options: argparse.Namespace) -> dict[str, Any]:
    """the explorer's page in Chromium: size, opening, a typed letter, words written a second"""
    path = options.page or newest_run() / "explorer.html"
    if not path.is_file():
        advice = "make it with python scripts/explore.py, or name another with --page"
        raise UserError(f"{path}: there is no such page; {advice}", DATA)
    print(describe(machine()) + "\n")
    with chromium() as browser:
        seconds = [opening(browser, path) for _ in range(3 if options.quick else 7)]
        page = opened(browser, path)
        page.fill("#own", STORY)
        typed = page.evaluate(TYPED, 5 * " and x.")
        rates = [words_a_second(page) for _ in range(1 if options.quick else 3)]
    found = {
        "megabytes": path.stat().st_size / 1e6,
        "seconds to open": statistics.median(seconds),
        "milliseconds a typed letter": statistics.median(typed),
        "tokens a second": statistics.median(rates),
    }
    print("\n".join(f"{name:28} {value:8.2f}" for name, value in found.items()))
    return {"machine": machine(), "page": str(path), **found}


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        advice = "pip install -c constraints.txt -e '.[dev]'"
        raise UserError(f"explorer: needs Playwright; {advice}", CONFIG) from None
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise UserError(f"explorer: needs one of {', '.join(BROWSERS)}; install it", CONFIG)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


def opened(browser: Any, path: Path) -> Any:
    """A page that is ready to be used, without a network."""
    page = browser.new_context(offline=True).new_page()
    page.goto(f"{path.resolve().as_uri()}#read?text=own")
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def opening(browser: Any, path: Path) -> float:
    """Seconds from nothing to a page that answers."""
    started = time.perf_counter()
    opened(browser, path).context.close()
    return time.perf_counter() - started


def words_a_second(page: Any) -> float:
    """As the page itself tells, of 200 tokens."""
    page.evaluate("location.hash = '#write'")
    page.fill("#write-length", "200")
    page.click("#write")
    said = page.wait_for_function(
        "() => document.querySelector('#main [role=status]')?.textContent.match(/, (\\d+) a sec/)"
    )
    return float(said.json_value()[1])
