"""Fetches a file whose content is known beforehand, so that what arrives is what was meant.

address, sha256 -> bytes
"""

import hashlib
from pathlib import Path

from tqdm import tqdm

from minigpt import storage
from minigpt.errors import DATA, UserError

SHAKESPEARE = Path("data/tinyshakespeare.txt")
SHAKESPEARE_URL = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
)
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
SECONDS = 10  # without an answer
BLOCK = 2**16


def download(url: str, sha256: str) -> bytes:
    """The content of an https address; raises OSError when it can't be had or is another."""
    from http.client import HTTPException
    from urllib.request import urlopen

    name, data = url.rsplit("/", 1)[-1], b""
    try:
        with urlopen(url, timeout=SECONDS) as answer:
            total = int(answer.headers.get("Content-Length") or 0) or None
            with tqdm(desc=name, total=total, unit="B", unit_scale=True, disable=None) as bar:
                while block := answer.read(BLOCK):
                    data += block
                    bar.update(len(block))
    except (OSError, HTTPException) as error:
        raise OSError(f"{getattr(error, 'reason', error)}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise OSError(f"is not what it was ({len(data)} bytes with another sha256)")
    return data


def prepare_shakespeare(source: Path | None = None, target: Path = SHAKESPEARE) -> None:
    """Writes tiny Shakespeare to `target`, from a local copy or, once, from the network."""
    if source is None and target.is_file() and storage.sha256(target) == SHAKESPEARE_SHA256:
        return
    storage.write_bytes(target, copied(source) if source else fetched())


def fetched() -> bytes:
    try:
        return download(SHAKESPEARE_URL, SHAKESPEARE_SHA256)
    except OSError as error:
        raise UserError(
            f"{SHAKESPEARE_URL}: {error}; go online, or give a copy of that file with --from FILE",
            DATA,
        ) from None


def copied(source: Path) -> bytes:
    try:
        data = source.read_bytes()
    except OSError as error:
        advice = f"give --from a copy of {SHAKESPEARE_URL}"
        raise UserError(f"{source}: {error.strerror or error}; {advice}", DATA) from None
    if hashlib.sha256(data).hexdigest() != SHAKESPEARE_SHA256:
        what = f"{source}: is not tiny Shakespeare ({len(data):,} bytes with another sha256)"
        raise UserError(f"{what}; the original has 1,115,394 bytes; give that", DATA)
    return data
