"""Which cards an engine lets go: one rule for all engines."""

from collections.abc import Sequence


def surplus_cards(kept: Sequence[tuple[int, str]], current_digest: str, limit: int) -> list[int]:
    """Return the sequences of an agent's cards that exceed `limit`, oldest first.

    `kept` holds (sequence, card digest), oldest first. The newest card of `current_digest`, which the agent's record
    names, is never among them.
    """
    current = max((sequence for sequence, digest in kept if digest == current_digest), default=0)
    others = [sequence for sequence, _ in kept if sequence != current]
    return others[: max(0, len(kept) - limit)]
