"""From a settled verdict to what the caller should do, and to an artifact's fate: the tables of design section 5. Pure."""

from collections.abc import Sequence

from cardkeeper.drift.model import Advice, ArtifactJudgement, ArtifactPolicy, Evidence, Verdict


def decide(verdict: Verdict, *, serving: bool) -> Advice:
    """Return the advice. `serving`: the card of now still serves what was needed."""
    match verdict:
        case Verdict.NO_DRIFT:
            return Advice.PROCEED
        case Verdict.CARD_CHANGED:
            return Advice.RETRY_WITH_RESOLUTION if serving else Advice.DO_NOT_RETRY
        case Verdict.AGENT_CONTRADICTS_CARD:
            return Advice.DO_NOT_RETRY
        case Verdict.UNCONFIRMED:
            return Advice.WAIT


def softened(verdict: Verdict, evidence: Sequence[Evidence], policy: ArtifactPolicy) -> Verdict:
    """Return the verdict as the policy has it.

    An agent that sends its text without a type, under a card that a re-fetch showed unchanged, has always done so: unless the
    policy is strict, that is worth a warning, and no contradiction on every task.
    """
    untyped = bool(evidence) and all(item.untyped for item in evidence)
    if untyped and verdict is Verdict.AGENT_CONTRADICTS_CARD and policy is not ArtifactPolicy.STRICT:
        return Verdict.NO_DRIFT
    return verdict


def artifact_accepted(found: ArtifactJudgement, policy: ArtifactPolicy, verdict: Verdict) -> bool:
    """Whether an artifact may go on.

    A type that is stated and not offered never may. One that is merely implied may not under STRICT, may under LENIENT, and
    under CONFIRM may where a re-fetch showed the card unchanged: the agent has always sent it so.
    """
    if found.rejected:
        return False
    if not found.untyped or policy is ArtifactPolicy.LENIENT:
        return True
    return policy is ArtifactPolicy.CONFIRM and verdict in (Verdict.NO_DRIFT, Verdict.AGENT_CONTRADICTS_CARD)
