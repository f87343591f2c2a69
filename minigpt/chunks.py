"""Cuts a text of any length into chunks that can be tokenised on their own.

A cut falls before a blank that follows something visible. No piece of the patterns in
tokenizer.py reaches across such a place, so the ids of the chunks, joined, are the ids of the
whole text. Only where CHUNK characters hold no such place there is a hard cut; it keeps memory
bounded and tiktoken's regular expressions within their limits.

blocks of text -> chunks
"""

from collections.abc import Iterable, Iterator

CHUNK = 2**17  # characters
BLANKS = " \n\r\t"


def cut_into_chunks(blocks: Iterable[str], size: int = CHUNK) -> Iterator[str]:
    """The same text in chunks of at most `size` characters; the cuts depend on the text alone."""
    rest = ""
    for block in blocks:
        rest += block
        start = 0
        while len(rest) - start > size:
            stop = find_cut(rest, start, start + size)
            yield rest[start:stop]
            start = stop
        rest = rest[start:]
    if rest:
        yield rest


def find_cut(text: str, start: int, stop: int) -> int:
    """The last place in (start, stop] that no token reaches across, else `stop`."""
    place = stop
    while (place := last_blank(text, start + 1, place + 1)) > start:
        place = start + len(text[start:place].rstrip())  # where a run of blanks begins
        if place > start and text[place] in BLANKS:
            return place
    return stop


def last_blank(text: str, start: int, stop: int) -> int:
    return max(text.rfind(blank, start, stop) for blank in BLANKS)


def split_at(blocks: Iterable[str], position: int) -> tuple[Iterator[str], Iterator[str]]:
    """The text before and from character `position` on; read the first to its end first."""
    source = iter(blocks)
    rest = ""

    def before() -> Iterator[str]:
        nonlocal rest
        missing = position
        while missing > 0 and (block := next(source, None)) is not None:
            yield block[:missing]
            rest = block[missing:]
            missing -= len(block)

    def after() -> Iterator[str]:
        if rest:
            yield rest
        yield from source

    return before(), after()
