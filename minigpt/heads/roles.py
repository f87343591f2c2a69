"""What a head may be called: by rules, never by mood, and not at all where none fits.

evidence, scores -> the labels of each head
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from minigpt.heads.evidence import Evidence
from minigpt.heads.intervals import Interval
from minigpt.heads.relations import RELATIONS

MARGIN = 0.10  # over the best baseline; Voita et al. 2019 ask for as much
MAJORITY = 0.5
EFFECT = 0.05  # nats
SPECIFICITY = 3.0
FEWEST = 20  # stories that ask about a relation
POSITIONAL, MOSTLY_POSITIONAL = 0.90, 0.40  # the first from Voita et al. 2019
PATTERN = 0.40  # mean weight on what an induction or duplicate head looks for
RESTS = 0.90  # share of queries with at least 0.3 on the first token (Gu et al. 2025)
BROAD = 0.75
NO_EFFECT = 0.01  # nats over all words

VERBS = {"resolves": "resolves", "together": "helps to resolve"}
VERBS |= {"looks": "looks at", "needed": "needed for"}


@dataclass(frozen=True)
class Label:
    """`kind` as in the rule; `relation` for those that are about one, `team` who helps."""

    kind: str
    relation: str | None = None
    offset: int | None = None
    team: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        return f"−{self.offset}" if self.offset else "itself"

    @property
    def what(self) -> str:
        return RELATIONS[self.relation].words if self.relation else ""

    @property
    def words(self) -> str:
        return {
            "resolves": f"resolves {self.what}",
            "together": f"resolves {self.what} together with {' and '.join(self.team)}",
            "looks": f"looks at {self.what} (no measurable effect)",
            "needed": f"needed for {self.what} (pattern not readable)",
            "positional": f"positional ({self.where})",
            "mostly positional": f"mostly positional ({self.where})",
        }.get(self.kind, self.kind)


@dataclass(frozen=True)
class Role:
    """A head with its labels, most telling first; none is an honest answer."""

    layer: int
    head: int
    labels: tuple[Label, ...]

    @property
    def name(self) -> str:
        return f"L{self.layer}H{self.head}"

    @property
    def words(self) -> str:
        return "; ".join(label.words for label in self.labels) or "unlabelled"

    @property
    def short(self) -> str:
        """As in: resolves surnames, refrains; induction."""
        parts = [label.words for label in self.labels if label.relation is None]
        for kind, verb in VERBS.items():
            about = [label.what for label in self.labels if label.kind == kind]
            if about:
                at = 0 if kind == "resolves" else len(parts)
                parts.insert(at, f"{verb} {', '.join(about)}")
        return "; ".join(parts) or "unlabelled"


def roles(
    heads: Sequence[tuple[int, int]],
    evidence: Sequence[Evidence],
    scores: dict[str, Tensor],
    effect: Interval,
) -> list[Role]:
    """The roles of these heads; `effect` is the loss over all words without each, (L, H)."""
    return [Role(*head, labels_of(head, evidence, scores, effect)) for head in heads]


def labels_of(
    head: tuple[int, int],
    evidence: Sequence[Evidence],
    scores: dict[str, Tensor],
    effect: Interval,
) -> tuple[Label, ...]:
    about = [label for one in evidence if (label := relation_label(one, head))]
    order = {"resolves": 0, "looks": 2, "needed": 3}
    found = [*about, *pattern_labels(head, scores, effect)]
    return tuple(sorted(found, key=lambda label: order.get(label.kind, 1)))


def relation_label(one: Evidence, head: tuple[int, int]) -> Label | None:
    """`resolves` needs a look and an effect; either alone is told as what it is."""
    needed = one.num_stories >= FEWEST and matters(
        float(one.there.low[head]), float(one.there.mean[head]), float(one.elsewhere[head])
    )
    kinds = {(True, True): "resolves", (True, False): "looks", (False, True): "needed"}
    found = kinds.get((looks(one, head), needed))
    return Label(found, one.relation) if found else None


def looks(one: Evidence, head: tuple[int, int]) -> bool:
    """Whether a head finds the right places better than chance, place or luck explain."""
    low, mean = float(one.score.low[head]), float(one.score.mean[head])
    better = low > one.best_baseline + MARGIN and low > one.twin_high
    return one.num_stories >= FEWEST and better and mean >= MAJORITY


def matters(low: float, there: float, elsewhere: float) -> bool:
    """Whether the words that depend on a relation, and hardly others, are lost without a head."""
    return low > EFFECT and there >= SPECIFICITY * elsewhere


def pattern_labels(
    head: tuple[int, int], scores: dict[str, Tensor], effect: Interval
) -> list[Label]:
    """Labels that need no relation: where it looks by place, by repetition, or not at all."""
    share = float(scores["positional_without_first"][head])
    offset = scores["positional_offset_without_first"][head]
    if share >= MOSTLY_POSITIONAL:
        kind = "positional" if share >= POSITIONAL else "mostly positional"
        return [Label(kind, offset=int(offset))]
    for name in ("induction", "duplicate"):
        if scores[f"{name}_without_first"][head] >= PATTERN:
            return [Label(name)]
    if scores["rests"][head] >= RESTS and effect.high[head] < NO_EFFECT:
        return [Label("resting")]
    if scores["entropy"][head] >= BROAD and effect.low[head] > NO_EFFECT:
        return [Label("broad")]
    return []


def with_team(roles: Sequence[Role], relation: str, heads: Sequence[tuple[int, int]]) -> list[Role]:
    """The roles when these heads resolve a relation together, and none of them alone.

    Each of them looks there, and the loss rises as the rule asks when all of them are gone.
    """
    names = {
        (role.layer, role.head): role.name for role in roles if (role.layer, role.head) in heads
    }
    found = []
    for role in roles:
        head = role.layer, role.head
        if head in names:
            labels = [label for label in role.labels if label.relation != relation]
            others = tuple(name for key, name in names.items() if key != head)
            labels.insert(0, Label("together", relation, team=others))
            role = replace(role, labels=tuple(labels))
        found.append(role)
    return found
