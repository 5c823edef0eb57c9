"""The guarded call, without I/O: what is done in which order, for the synchronous and the asyncio client alike.

resolve -> run the caller's function -> report -> validate -> on confirmed drift, once more with the fresh resolution.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from cardkeeper_client.errors import (
    AgentContradictsCardError,
    ArtifactSchemaDriftError,
    DriftError,
    NotJudgedError,
    ServiceError,
    StaleAgentCardError,
)
from cardkeeper_client.need import Need
from cardkeeper_client.observed import document_of_error
from cardkeeper_client.question import report_request
from cardkeeper_client.resolution import Resolution
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import verdict_pb2


@dataclass(frozen=True, slots=True)
class Resolve:
    """Ask for a resolution; answered with a Resolution."""

    need: Need


@dataclass(frozen=True, slots=True)
class Run:
    """Run the caller's function; answered with Ran."""

    resolution: Resolution


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it: an answer, or the exception that it ended with."""

    answer: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Report an outcome; answered with a Judgement."""

    resolution: Resolution
    request: pb.ReportTaskOutcomeRequest


@dataclass(frozen=True, slots=True)
class Validate:
    """Validate an artifact; answered with a ValidateArtifactResponse."""

    resolution: Resolution
    request: pb.ValidateArtifactRequest


Step: TypeAlias = Resolve | Run | Report | Validate


def guarded(need: Need, *, validate: bool) -> Generator[Step, Any, Any]:
    """Yield the steps of a guarded call; return the agent's answer.

    Raises DriftError, NotJudgedError, or what the caller's function raised where that is no sign of drift. The function runs
    a second time only after the service confirmed that the first ran against a card that is no longer true, and with the
    fresh one in hand.
    """
    resolution: Resolution = yield Resolve(need)
    for last in (False, True):
        ran: Ran = yield Run(resolution)
        try:
            drift = yield from _judged(need, resolution, ran, validate=validate)
        except ServiceError as error:
            if ran.error is not None:
                ran.error.add_note(f"Cardkeeper could not judge it: {error}")
                raise ran.error from ran.error.__cause__
            raise NotJudgedError(f"the answer could not be judged: {error}", ran.answer) from error
        if drift is None:
            if ran.error is not None:
                raise ran.error
            return ran.answer
        if last or drift.judgement.advice != verdict_pb2.ADVICE_RETRY_WITH_RESOLUTION:
            raise drift from ran.error
        resolution = Resolution.of(drift.judgement.resolution)
    raise AssertionError("the second round ends the loop")


def _judged(need: Need, resolution: Resolution, ran: Ran, *, validate: bool) -> Generator[Step, Any, DriftError | None]:
    """Report and validate; return what speaks against the card, or None."""
    observed = ran.answer if ran.error is None else document_of_error(ran.error)
    if ran.error is not None and observed is None:
        return None  # the function failed by itself: nothing about the agent
    try:
        report = report_request(resolution, observed, need=need)
    except (TypeError, ValueError) as error:
        raise NotJudgedError(f"the answer is nothing that can be reported: {error}", ran.answer) from error
    judgement = yield Report(resolution, report)
    drift = drift_of(resolution, judgement, ran.answer)
    if ran.error is not None or not report.HasField("document"):
        return drift  # there is no artifact to validate
    if not validate:
        return drift if is_stale(judgement) or not _only_about_artifacts(judgement) else None
    if drift is not None and not _only_about_artifacts(judgement):
        return drift
    # Whether an artifact may pass is for its validation to say.
    question = pb.ValidateArtifactRequest(negotiated=resolution.negotiated(), artifact=report.document)
    verdict: pb.ValidateArtifactResponse = yield Validate(resolution, question)
    return None if verdict.accepted else ArtifactSchemaDriftError(resolution, verdict.judgement, ran.answer)


def is_stale(judgement: verdict_pb2.Judgement) -> bool:
    """Whether a judgement says that the card which was negotiated with must not be used any more."""
    return judgement.verdict not in (verdict_pb2.VERDICT_NO_DRIFT, verdict_pb2.VERDICT_AGENT_CONTRADICTS_CARD)


def drift_of(resolution: Resolution, judgement: verdict_pb2.Judgement, answer: Any) -> DriftError | None:
    """The error that a judgement calls for, or None."""
    match judgement.verdict:
        case verdict_pb2.VERDICT_NO_DRIFT:
            return None
        case verdict_pb2.VERDICT_AGENT_CONTRADICTS_CARD:
            return AgentContradictsCardError(resolution, judgement, answer)
        case _ if _only_about_artifacts(judgement):
            return ArtifactSchemaDriftError(resolution, judgement, answer)
        case _:
            return StaleAgentCardError(resolution, judgement, answer)


def _only_about_artifacts(judgement: verdict_pb2.Judgement) -> bool:
    kinds = {item.kind for item in judgement.evidence}
    return bool(kinds) and kinds <= {verdict_pb2.EVIDENCE_KIND_ARTIFACT_TYPE}
