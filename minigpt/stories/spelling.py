"""The stories' words as text: spaces, quotation marks, and the pieces that become tokens.

words <-> text
"""

from functools import cache

import regex

from minigpt.stories.words import Words, words
from minigpt.stories.world import CLOSE, END, OPEN
from minigpt.tokenizer import WORDS

BARE = (",", ".", "!", "?", END)  # stand without a space before them
FIRST = ("One", "Once", "There", "This", "I", "My", "Hello", "Oh")  # begin a line or a quotation
FORMS = """day went to the there was a called who lived near knew met has and named The Then
When Near Little What Everyone Look Soon Someone They She He Her His she he her his sky is
belongs behind see sees it will be brings knows here play with sing eat laugh name friend likes
wants hugs finds shows cleans goes feels because today eats says sings am again girl boy paints
story of Is Yes Good A parrot are"""


@cache
def vocabulary() -> list[str]:
    """All pieces of more than one byte, in a fixed order: words with their leading space."""
    known = words()
    groups = [getattr(known, name) for name in Words.__dataclass_fields__]
    plain = [form for group in groups for item in group for form in forms_of(item)]
    spaced = dict.fromkeys(f" {word}" for word in FORMS.split() + plain)
    return [piece for piece in (*FIRST, ' "', *spaced) if len(piece) > 1]


def forms_of(item: str | tuple[str, str]) -> tuple[str, ...]:
    return (item,) if isinstance(item, str) else item


@cache
def piece_of(word: str) -> str:
    if word in BARE or word in FIRST:
        return word
    return {OPEN: ' "', CLOSE: '"'}.get(word, f" {word}")


@cache
def word_of(piece: str) -> str:
    return {' "': OPEN, '"': CLOSE}.get(piece, piece.removeprefix(" "))


@cache
def id_of(word: str) -> int:
    """The id of a word in the stories' word tokenizer: 256 bytes, then the vocabulary."""
    piece = piece_of(word)
    return ord(piece) if len(piece) == 1 else 256 + vocabulary().index(piece)


def spell(story: list[str]) -> str:
    return "".join(map(piece_of, story))


def unspell(text: str) -> list[str]:
    """The words of a text; a word that is spelt in another way than stories do stays as it is."""
    pieces = regex.findall(WORDS, text)
    found = [word_of(piece) for piece in pieces]
    pairs = zip(found, pieces, strict=True)
    return [word if piece_of(word) == piece else piece for word, piece in pairs]
