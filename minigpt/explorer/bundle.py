"""The page's files and what it is told, as one HTML file.

JavaScript modules become one script: each a function that runs once and returns its exports, in
the order in which they need one another. A content security policy allows this very script and
this very style and nothing else, no network, no other script. Data enter in one place, as JSON
without a "<", and reach the page as text only.

contents -> HTML
"""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "page"
IMPORT = re.compile(r'^import (\{[^}]*\}) from "([^"]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:class|const|function) (\w+))", re.MULTILINE)
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'"


def page(contents: dict[str, Any], weights: dict[str, Any]) -> str:
    """The whole file; `weights` stand apart, so that the rest can be read by people."""
    script, style = one_script(PAGE / "main.js"), read(PAGE / "style.css")
    policy = f"{POLICY}; script-src {digest(script)}; style-src {digest(style)}"
    parts = {
        "POLICY": policy,
        "STYLE": style,
        "CONTENTS": as_json(contents),
        "WEIGHTS": as_json(weights),
        "SCRIPT": script,
    }
    template = read(PAGE / "index.html")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def one_script(main: Path) -> str:
    """A module with all that it imports, each once, what is needed first."""
    parts: dict[Path, str] = {}

    def take(path: Path) -> None:
        if path in parts:
            return
        source = read(path)
        for _, name in IMPORT.findall(source):
            take((path.parent / name).resolve())
        parts[path] = as_function(source, path)

    take(main.resolve())
    return "\n" + "\n".join(parts.values())


def as_function(source: str, path: Path) -> str:
    """A module as a constant that holds its exports."""

    def taken(found: re.Match[str]) -> str:
        return f"const {found[1]} = {constant((path.parent / found[2]).resolve())};"

    exports = ", ".join(name for _, name in EXPORT.findall(source))
    body = EXPORT.sub(r"\1", IMPORT.sub(taken, source))
    return f"const {constant(path)} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"


def constant(path: Path) -> str:
    """As in: $views_read."""
    return "$" + "_".join(path.relative_to(PAGE).with_suffix("").parts)


def as_json(value: Any) -> str:
    """JSON that no HTML parser takes for a tag, in plain ASCII."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def digest(source: str) -> str:
    sha256 = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(sha256).decode()}'"


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
