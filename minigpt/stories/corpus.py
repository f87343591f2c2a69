"""Stories as a corpus: told from a seed, kept as ids, with the exact loss that can't be beaten.

seed -> Corpus
"""

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import numpy as np
from tqdm import tqdm

from minigpt import storage
from minigpt.config import Config
from minigpt.data import Corpus, Floor, Split
from minigpt.parallel import pool_of_processes
from minigpt.stories import spelling, tellers
from minigpt.stories.world import END, Mix
from minigpt.tokenizer import Tokenizer

CACHE = Path("data/cache")
MIXES = {
    "train": Mix(),
    "val": Mix(),
    "val-new": Mix(held_out=True),
    "val-far": replace(Mix(), endings=(0.02, 0.02, 0.02, 0.02, 0.02, 0.1)),
    "val-trap": Mix(two_people=1.0, same_gender=0.5, mismatch=1.0, against=1.0),
}
NUM_STORIES = {"train": 60_000, "val": 600}
CHUNK = 1000


def story_words(split: str, seed: int, index: int) -> list[str]:
    """The words of one story of a split; the same arguments give the same story anywhere."""
    return tellers.narrate(f"{split} {seed} {index}", MIXES[split])


def story_text(split: str, seed: int, index: int) -> str:
    """One story as a line of text, without line breaks."""
    return spelling.spell(story_words(split, seed, index)).strip("\n")


def chunk_of_ids(split: str, seed: int, first: int, count: int) -> list[list[int]]:
    """The ids of several stories, each with the line break before it."""
    id_of = spelling.id_of
    stories = (story_words(split, seed, index) for index in range(first, first + count))
    return [[id_of(word) for word in story[:-1]] for story in stories]


def told(split: str, seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """All ids of a split (N,) and where its stories begin (S,), with one line break at the end."""
    starts, parts, place = [], [], 0
    chunks = told_in_parallel(split, seed, number)
    for chunk in tqdm(chunks, "telling stories", number // CHUNK, disable=None, leave=False):
        for ids in chunk:
            starts.append(place)
            place += len(ids)
            parts.append(np.array(ids, dtype=np.uint16))
    parts.append(np.array([spelling.id_of(END)], dtype=np.uint16))
    return np.concatenate(parts), np.array(starts)


def told_in_parallel(split: str, seed: int, number: int) -> Iterator[list[list[int]]]:
    firsts = range(0, number, CHUNK)
    counts = [min(CHUNK, number - first) for first in firsts]
    if len(counts) == 1:
        yield chunk_of_ids(split, seed, 0, number)
        return
    with pool_of_processes() as pool:
        yield from pool.map(chunk_of_ids, repeat(split), repeat(seed), firsts, counts)


def floor_of(split: str, seed: int, number: int) -> Floor:
    """The chance and the slot of each id of `told`."""
    surprisals: list[float] = []
    slots: list[str] = []
    for index in range(number):
        reader = tellers.read(story_words(split, seed, index), MIXES[split])
        last = reader.surprisals[-1], reader.slots[-1]
        surprisals += reader.surprisals[:-1] if not surprisals else reader.surprisals[1:-1]
        slots += reader.slots[:-1] if not slots else reader.slots[1:-1]
        surprisals.append(last[0])
        slots.append(last[1])
    names = tuple(sorted(set(slots)))
    places = {name: place for place, name in enumerate(names)}
    return Floor(
        names,
        np.array([places[slot] for slot in slots], dtype=np.uint8),
        np.array(surprisals, dtype=np.float32),
    )


# ------------------------------------------------------------------------------ on disk


def open_stories(config: Config, cache: Path = CACHE) -> Corpus:
    """The stories of a seed, told at first use, in seconds, and kept in the cache."""
    storage.remove_leftovers(cache)
    fingerprint = version(config.seed)
    folder = cache / f"stories-{fingerprint[:16]}"
    if not (folder / "meta.json").exists():
        write_stories(folder, config.seed)
    arrays = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    splits = {
        name: Split(arrays[f"{name}-ids"], meta["bytes"][name], arrays[f"{name}-starts"])
        for name in NUM_STORIES
    }
    floor = Floor(tuple(meta["slots"]), arrays["slots"], arrays["surprisals"])
    tokenizer = Tokenizer.word(spelling.vocabulary())
    corpus = Corpus("stories", tokenizer, splits["train"], splits["val"], fingerprint, floor)
    corpus.require_room(config.model.context_length)
    return corpus


def version(seed: int) -> str:
    """Changes whenever the stories would: with the seed, the grammar or the words."""
    digest = hashlib.sha256(json.dumps([seed, NUM_STORIES, repr(MIXES)]).encode())
    for path in sorted(Path(__file__).parent.glob("*.[py]*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def write_stories(folder: Path, seed: int) -> None:
    tokenizer = Tokenizer.word(spelling.vocabulary())
    num_bytes = {}
    with storage.new_folder(folder) as new:
        for name, number in NUM_STORIES.items():
            ids, starts = told(name, seed, number)
            if name == "train":  # half of the rows begin with a first word, as prompts do
                starts = np.stack([starts, starts + 1], axis=1).ravel()
            num_bytes[name] = len(tokenizer.decode_bytes(ids))
            write_array(new / f"{name}-ids.npy", ids)
            write_array(new / f"{name}-starts.npy", starts)
        floor = floor_of("val", seed, NUM_STORIES["val"])
        write_array(new / "slots.npy", floor.slots)
        write_array(new / "surprisals.npy", floor.surprisal)
        storage.write_json(new / "meta.json", {"bytes": num_bytes, "slots": floor.names})


def write_array(path: Path, array: np.ndarray) -> None:
    content = io.BytesIO()  # numpy itself would not say why it can't write to a file
    np.save(content, array)
    storage.write_bytes(path, content.getvalue())
