"""A real browser for the explorer's tests: headless Chromium, driven by Playwright, offline."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]


@contextlib.contextmanager
def opened_browser() -> Iterator[Any]:
    """Skips the tests where there is no browser."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page without a network, and everything it said or asked for."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.said: list[str] = []
        self.asked_for: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked_for.append(request.url))

    def open(self, path: Path, place: str = "") -> Any:
        """Opens an explorer from disk and waits until it is ready."""
        self.page.goto(f"{path.resolve().as_uri()}#{place}")
        self.page.wait_for_selector("html[data-ready]", state="attached")
        return self.page

    def go(self, place: str) -> None:
        """Follows a link within the page."""
        self.page.evaluate("(place) => { location.hash = place; }", place)
        self.page.wait_for_function(
            "(view) => document.querySelector('nav a[aria-current]').hash.startsWith('#' + view)",
            arg=place.split("?")[0],
        )
