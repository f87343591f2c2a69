"""Three to six plain sentences about what a run's heads have learned, each with its evidence.

cards, examples, training -> [{text, evidence, link}]
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

Card = dict[str, Any]
EXAMPLES = {  # what the words of a relation mean
    "pronoun → referent": "“She” means Lily",
    "pronoun → name": "She says, “I am → Lily",
    "possessive → owner": "“her” means Lily's",
    "owned thing": "She wants her → ball",
    "object recall": "the red → ball",
    "colour recall": "The ball is → red",
    "owner recall": "The red ball belongs to → Lily",
    "surname": "Lily → Reed",
    "refrain": "Oh, Reed red, Reed → red",
    "agreement": "The dogs near the cat → run",
    "verb → subject": "“run” belongs to “dogs”",
    "repeated name": "“Lily” is the Lily of before",
    "adjective → noun": "“ball” belongs to “red”",
}
MOST, MOST_RELATIONS = 6, 3
CLEAR = 0.05  # nats a word


def findings(
    cards: Sequence[Card], training: dict[str, Any], num_stories: int
) -> list[dict[str, Any]]:
    """The most telling first; those that need stories only where there are some."""
    resolved = relations(cards) or nearest(cards)
    found = [learned(training), *resolved, *patterns(cards), needed(cards)]
    told = [one for one in found if one][: MOST - 1]
    return [*told, rest(cards, num_stories)]


def finding(text: str, evidence: str, link: str) -> dict[str, str]:
    """A sentence with what it rests on and where the page shows that."""
    return {"text": text, "evidence": evidence, "link": link}


def address(view: str, **place: Any) -> str:
    """As in: read?head=L2H1&text=3."""
    return f"{view}?{urlencode(place)}"


def learned(training: dict[str, Any]) -> dict[str, Any] | None:
    """How good the model is, beside the floor or beside counting."""
    if not training["val"]:
        return None
    step, loss = training["val"][-1]
    floor, ngrams = training["floor"], training["ngrams"]
    evidence = f"after {step:,} steps; validation loss {loss:.3f} nats per token"
    counting = min(ngrams.values(), default=None)
    if floor is not None:
        text = f"The model predicts almost as well as anyone could: {loss - floor:.3f} nats short"
        evidence += f", exact floor {floor:.3f}"
        text = text if loss - floor < 0.1 else f"The model is {loss - floor:.2f} nats from perfect"
        return finding(f"{text}.", evidence, "training")
    if counting is None:
        return finding(f"The model's surprise is {loss:.2f} nats a token.", evidence, "training")
    better = "better" if loss < counting else "worse"
    text = f"The model predicts {abs(counting - loss):.2f} nats {better} than counting pairs and"
    return finding(f"{text} triples does.", f"{evidence}, counting {counting:.3f}", "training")


def relations(cards: Sequence[Card]) -> list[dict[str, Any]]:
    """What heads resolve, the most needed first, one sentence for each head or team."""
    told: list[tuple[float, dict[str, Any]]] = []
    for card in cards:
        mine = [one for one in card["relations"] if one["label"] == "resolves"]
        if mine:
            told.append((max(one["there"] for one in mine), resolving(card, mine)))
    teams: dict[str, list[Card]] = {}
    for card in cards:
        for one in card["relations"]:
            if one["label"] == "together":
                teams.setdefault(one["relation"], []).append(card)
    for relation, members in teams.items():
        found = team(relation, members)
        told.append((found.pop("worth"), found))
    return [one for _, one in sorted(told, key=lambda pair: -pair[0])][:MOST_RELATIONS]


def resolving(card: Card, mine: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = mine[0]  # relations come in the order of how much they ask
    score, questions, simple = first["score"], first["questions"], first["baseline"]
    what = listed([one["words"] for one in mine])
    text = f"{card['name']} resolves {what}: it looks at the right word, and is needed for it."
    evidence = (
        f"{first['words']} ({EXAMPLES[first['relation']]}): right in {score:.0%} of {questions} "
        f"questions, {simple:.0%} without looking; without the head {first['there']:+.2f} nats"
    )
    return finding(text, evidence, case_of(card, first["relation"]))


def nearest(cards: Sequence[Card]) -> list[dict[str, Any]]:
    """Where no head resolves anything: the one that comes nearest, if stories were asked."""
    asked = [
        (one["score"] - one["baseline"], card, one)
        for card in cards
        for one in card["relations"]
        if one["score"] is not None and one["baseline"] is not None
    ]
    if not asked:
        return []
    _, card, one = max(asked, key=lambda found: found[0])
    text = f"No head resolves a relation; {card['name']} comes nearest, for {one['words']}."
    evidence = f"right in {one['score']:.0%} of questions, {one['baseline']:.0%} without looking"
    return [finding(text, evidence, address("heads", head=card["name"]))]


def team(relation: str, members: Sequence[Card]) -> dict[str, Any]:
    names = listed([card["name"] for card in members])
    mine = [one for card in members for one in card["relations"] if one["relation"] == relation]
    best = max(mine, key=lambda one: one["score"])
    scores = ", ".join(f"{one['score']:.0%}" for one in mine)
    text = (
        f"{names} resolve {best['words']} together: each looks right, and one covers for another."
    )
    example = EXAMPLES[relation]
    evidence = f"{best['words']} ({example}): right in {scores} of {best['questions']} questions"
    found = finding(text, evidence, case_of(members[0], relation))
    return found | {"worth": sum(one["there"] or 0 for one in mine)}


def case_of(card: Card, relation: str) -> str:
    """Where the head answers such a question rightly, or its card."""
    for case in card["cases"]:
        if case["right"] and case["relation"] == relation:
            return address("read", head=card["name"], text=case["text"], word=case["query"])
    return address("heads", head=card["name"])


def patterns(cards: Sequence[Card]) -> list[dict[str, Any]]:
    """One sentence for the heads that go by place or repetition."""
    words = {
        "induction": "go on as the text did before (induction)",
        "positional": "look a fixed distance back",
        "mostly positional": "mostly look a fixed distance back",
        "duplicate": "look at the same word before",
    }
    found = {}
    for kind, verb in words.items():
        names = [card["name"] for card in cards if kind in kinds(card)]
        if names:
            found[kind] = (names, verb)
    if not found:
        return []
    parts = [f"{listed(names)} {verb if len(names) > 1 else singular(verb)}"
             for names, verb in found.values()]  # fmt: skip
    first = next(iter(found.values()))[0][0]
    evidence = "by where their attention goes, whatever the words are"
    return [finding(f"{'; '.join(parts)}.", evidence, address("heads", head=first))]


def kinds(card: Card) -> set[str]:
    """The kinds of patterns that a head's words tell of, beside its most telling one."""
    words = card["words"]
    found = {card["kind"]}
    found |= {kind for kind in ("induction", "duplicate") if kind in words.split("; ")}
    if "positional" in words:
        found.add("mostly positional" if "mostly positional" in words else "positional")
    return found


def singular(verb: str) -> str:
    first, _, others = verb.partition(" ")
    if first == "mostly":
        return "mostly looks " + others.partition(" ")[2]
    return f"{first}es {others}" if first.endswith("o") else f"{first}s {others}"


def needed(cards: Sequence[Card]) -> dict[str, Any] | None:
    """The head that the loss rises most without."""
    known = [card for card in cards if card["effect"] is not None]
    if not known:
        return None
    most = max(known, key=lambda card: card["effect"])
    text = f"The head that is missed most is {most['name']}; switch it off and see what changes."
    if most["effect"] < CLEAR:
        text = f"No single head is missed much; {most['name']} most of all."
    evidence = f"without it {most['effect']:+.2f} nats a word"
    return finding(text, evidence, address("off", off=most["name"]))


def rest(cards: Sequence[Card], num_stories: int) -> dict[str, Any]:
    """What is not known: an honest end."""
    unknown = [card["name"] for card in cards if card["kind"] == "unlabelled"]
    looks = [card["name"] for card in cards if card["kind"] == "looks"]
    parts = []
    if unknown:
        verb = "have" if len(unknown) > 1 else "has"
        parts.append(f"{listed(unknown)} {verb} no label: no rule fits")
    if looks:
        verb = "look" if len(looks) > 1 else "looks"
        parts.append(f"{listed(looks)} {verb} at the right words without being needed for it")
    text = "; ".join(parts) or "Every head has a label"
    where = f"by rule, on {num_stories} stories" if num_stories else "a description, not a proof"
    return finding(f"{text}.", where, "method")


def listed(parts: Sequence[str]) -> str:
    """As in: a, b and c."""
    *firsts, last = dict.fromkeys(parts)
    return f"{', '.join(firsts)} and {last}" if firsts else last
