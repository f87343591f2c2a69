"""The stories keep their word: exact chances, true bindings, and a checker that sees mistakes."""

import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from conftest import REPOSITORY, run_script

from minigpt.command_line import load_config
from minigpt.stories import corpus, spelling
from minigpt.stories.chances import is_held_out
from minigpt.stories.check import check
from minigpt.stories.corpus import MIXES, story_text, story_words
from minigpt.stories.grammar import tell
from minigpt.stories.tellers import Narrator, NotGrammatical, Reader, read
from minigpt.stories.words import words
from minigpt.stories.world import END
from minigpt.tokenizer import Tokenizer

STORIES = [story_words("train", 7, index) for index in range(400)]


@pytest.fixture(scope="module")
def readings():
    return [read(story, MIXES["train"]) for story in STORIES]


@pytest.mark.parametrize("split", MIXES)
def test_every_told_story_is_read_without_a_mistake(split):
    for index in range(60):
        story = story_words(split, 3, index)
        assert read(story, MIXES[split]).mistakes == []
        assert spelling.unspell(spelling.spell(story)) == story


def test_the_floor_is_the_mean_entropy(readings):
    surprisal = np.concatenate([r.surprisals[1:] for r in readings])
    entropy = np.concatenate([r.entropies[1:] for r in readings])
    error = (surprisal - entropy).std() / math.sqrt(len(surprisal))
    assert abs(surprisal.mean() - entropy.mean()) < 4 * error


def test_words_come_as_often_as_the_grammar_says():
    """The first decision of a story, and a later one, counted against their chances."""
    found = Counter(story_words("train", 5, index)[1] for index in range(3000))
    for word, share in {"One": 3 / 8, "Once": 2 / 8, "There": 1 / 8, "This": 2 / 8}.items():
        error = math.sqrt(share * (1 - share) / 3000)
        assert abs(found[word] / 3000 - share) < 4 * error


def test_all_chances_at_a_place_add_up_to_one(readings):
    """Reads with a reader that asks for every option of every decision."""

    class Adding(Reader):
        totals = []

        def choose(self, slot, options):
            assert len(set(options)) == len(options)
            total = sum(options.values())
            Adding.totals.append(sum(weight / total for weight in options.values()))
            return super().choose(slot, options)

    reader = Adding(STORIES[0])
    tell(reader, MIXES["train"])
    assert np.allclose(Adding.totals, 1)
    assert reader.surprisals == readings[0].surprisals


def test_the_same_seed_tells_the_same_story_in_any_process():
    code = "from minigpt.stories.corpus import story_text; print(story_text('val', 9, 4))"
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert told == {story_text("val", 9, 4) + "\n"}


def test_no_validation_story_is_trained_on():
    train = {story_text("train", 1, index) for index in range(3000)}
    assert not train & {story_text("val", 1, index) for index in range(600)}


def test_held_out_pairs_are_bound_in_val_new_and_nowhere_else():
    for split, held_out in (("train", False), ("val-new", True)):
        for index in range(100):
            story = story_words(split, 1, index)
            first = next(place for place, word in enumerate(story) if word in words().names)
            assert is_held_out(story[first], story[first + 1]) == held_out
            colour, thing = words().colours, words().things
            bound = next(
                place
                for place, pair in enumerate(zip(story, story[1:], strict=False))
                if (pair[0] in colour and pair[1] in thing)
                or (pair[0] in thing and pair[1] in colour)
            )
            assert is_held_out(story[bound], story[bound + 1]) == held_out


def test_far_stories_are_longer_and_traps_hold_two_people():
    def mean_length(split):
        return np.mean([len(story_words(split, 1, index)) for index in range(200)])

    assert mean_length("val-far") > 1.4 * mean_length("val")
    for index in range(50):
        story = story_words("val-trap", 1, index)
        opening = story[: story.index(".")]
        assert sum(word in words().names for word in opening) == 2


def replaced(story, place, word):
    return [*story[:place], word, *story[place + 1 :]]


@pytest.mark.parametrize(
    ("slot", "group"),
    [
        ("surname", "surnames"),
        ("object", "things"),
        ("colour recall", "colours"),
        ("owner", "names"),
        ("name by pronoun", "names"),
        ("refrain", "lexicon"),
    ],
)
def test_a_wrong_bound_word_is_found_with_its_kind_and_place(readings, slot, group):
    tried = 0
    for story, reading in zip(STORIES, readings, strict=True):
        if slot in reading.slots and tried < 10:
            place = reading.slots.index(slot)
            if reading.entropies[place]:  # two words would do
                continue
            members = getattr(words(), group)
            same_kind = [w for w in members if w != story[place]]
            if slot == "refrain":
                same_kind = [w for w in words().things if w != story[place]]
                if story[place] not in words().things:
                    continue
            changed = replaced(story, place, same_kind[tried % len(same_kind)])
            first = read(changed, MIXES["train"]).mistakes[0]
            assert (first.kind, first.position, first.expected) == (slot, place, story[place])
            tried += 1
    assert tried >= 3


def test_a_wrong_number_of_a_verb_is_found(readings):
    other = {form: pair[1 - i] for pair in words().doings for i, form in enumerate(pair)}
    story, reading = next(
        (s, r)
        for s, r in zip(STORIES, readings, strict=True)
        if any(word in other and slot == "agreement" for word, slot in zip(s, r.slots))  # noqa: B905
    )
    places = enumerate(zip(story, reading.slots))  # noqa: B905
    place = next(p for p, (word, slot) in places if word in other and slot == "agreement")
    mistakes = read(replaced(story, place, other[story[place]]), MIXES["train"]).mistakes
    assert [(m.kind, m.position) for m in mistakes] == [("agreement", place)]


def test_a_word_that_cannot_stand_there_ends_the_reading(readings):
    for place in range(1, len(STORIES[0]) - 1):
        if readings[0].slots[place] == "form":
            with pytest.raises(NotGrammatical) as caught:
                read(replaced(STORIES[0], place, "zebra"), MIXES["train"])
            assert caught.value.args[0].position == place


def test_the_checker_tells_grammatical_from_consistent():
    good = "One day Lily Reed went to the park. Little Lily has a red ball and a blue kite. "
    assert check(good + "The ball is red.").consistent
    wrong = check(good + "The ball is blue. Everyone knows Lily Fox.")
    assert wrong.grammatical and not wrong.consistent
    assert [m.kind for m in wrong.mistakes] == ["colour recall", "surname"]
    for text in ("", "Hello", good + "The the.", good + "The ball is", "One day  Lily Reed went"):
        assert not check(text).grammatical


def test_relations_point_at_what_they_name(readings):
    names = set()
    for story, reading in zip(STORIES, readings, strict=True):
        for relation in reading.relations:
            names.add(relation.name)
            assert all(0 < place <= relation.query for place in relation.gold + relation.others)
            if relation.name == "surname":
                assert {story[place] for place in relation.gold} == {story[relation.query + 1]}
            if relation.name == "object recall":
                assert {story[place] for place in relation.gold} == {story[relation.query + 1]}
            if relation.name == "refrain":
                assert story[relation.gold[0]] == story[relation.query + 1]
    assert len(names) >= 12


def test_there_is_enough_to_read():
    assert len(spelling.vocabulary()) >= 300
    assert len(set(spelling.vocabulary())) == len(spelling.vocabulary())
    tokenizer = Tokenizer.word(spelling.vocabulary())
    for story in STORIES[:50]:
        ids = [spelling.id_of(word) for word in story]
        assert tokenizer.encode(spelling.spell(story)) == ids


def test_no_word_stands_for_two_things():
    known = words()
    groups = [known.names, known.surnames, known.colours, known.things, known.places]
    groups += [[form for pair in known.animals for form in pair]]
    listed = [word for group in groups for word in group]
    assert len(set(listed)) == len(listed)


def test_a_parrot_repeats_and_things_are_called_by_what_was_said_first():
    tom = "Little Tom has a blue hat."
    good = f"This is the story of Lily Reed and Tom Hill. Little Lily paints her ball red. {tom}"
    for more in (
        'Little Lily says, "My ball is red." A parrot says, "My ball is red."',
        "Is the ball red? Yes! The ball is red. She likes his hat.",
        "Good night, Tom Hill!",
    ):
        assert check(f"{good} {more}").consistent, more
    given = (
        "One day Lily Reed met Tom Hill. The red ball belongs to Lily. Little Tom has a blue hat."
    )
    assert check(f"{given} The ball belongs to Lily.").consistent
    lost = check(f"{given} The ball belongs to Tom.")
    assert [mistake.kind for mistake in lost.mistakes] == ["owner"]
    echo = check(f'{good} Little Lily says, "My ball is red." A parrot says, "My ball is blue."')
    assert [mistake.kind for mistake in echo.mistakes] == ["echo"]
    assert not check(f'{good} A parrot says, "My ball is red."').grammatical


def test_a_narrator_says_what_it_is_told():
    narrator = Narrator("seed")
    narrator.say("lived a")
    assert narrator.choose("child", {"girl": 1.0}) == "girl"
    assert narrator.words == [END, "lived", "a", "girl"]


def test_the_corpus_is_kept_and_its_floor_fits_its_ids(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "NUM_STORIES", {"train": 1200, "val": 30})
    first = corpus.open_stories(load_config(None), cache=tmp_path)
    again = corpus.open_stories(load_config(None), cache=tmp_path)
    assert np.array_equal(first.train.ids, again.train.ids)
    assert len(first.val.ids) == len(first.floor.slots) == len(first.floor.surprisal)
    text = first.tokenizer.decode(first.val.ids)
    assert text == "\n" + "\n".join(story_text("val", 1337, i) for i in range(30)) + "\n"
    assert np.all(first.train.ids[first.train.starts[::2]] == first.tokenizer.start_id)
    begun = {first.tokenizer.label(i) for i in first.train.ids[first.train.starts[1::2]]}
    assert begun == {"One", "Once", "There", "This"}
    new = next(i for i, name in enumerate(first.floor.names) if name == "new surname")
    told = [first.tokenizer.label(i).strip("·") for i in first.val.ids[first.floor.slots == new]]
    assert set(told) <= set(words().surnames)


def test_the_script_tells_and_writes_stories(tmp_path):
    done = run_script("make_stories.py", "--count=3", "--seed=4", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == [story_text("train", 4, i) for i in range(3)]
    done = run_script("make_stories.py", "--count=2", "--output=s.txt", cwd=tmp_path)
    assert (tmp_path / "s.txt").read_text(encoding="utf-8").count("\n") == 2
    for wrong in ("--count=-1", "--count=x", "--split=test", "--seed=x"):
        done = run_script("make_stories.py", wrong, cwd=tmp_path)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1


def test_the_committed_sample_is_what_the_generator_tells():
    text = (REPOSITORY / "data" / "sample_stories.txt").read_text(encoding="utf-8")
    assert text.splitlines() == [story_text("train", 1337, index) for index in range(50)]
