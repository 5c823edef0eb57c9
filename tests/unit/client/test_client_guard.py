"""The order of a guarded call, with the service's answers written by hand: no I/O, no client."""

from typing import Any

import pytest

from cardkeeper_client import (
    AgentContradictsCardError,
    ArtifactSchemaDriftError,
    NotJudgedError,
    ServiceUnavailableError,
    SkillRefusedError,
    StaleAgentCardError,
)
from cardkeeper_client.guard import Ran, Report, Resolve, Run, Step, Validate, guarded
from cardkeeper_client.need import Need
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import observation_pb2, resolution_pb2, verdict_pb2
from client_values import resolution

NEED = Need("http://a.example", "s", output_modes=("text/markdown",))
ANSWER = {"status": {"state": "completed"}}

CLEAR = verdict_pb2.Judgement(verdict=verdict_pb2.VERDICT_NO_DRIFT, advice=verdict_pb2.ADVICE_PROCEED)
SKILL = verdict_pb2.Evidence(kind=verdict_pb2.EVIDENCE_KIND_UNKNOWN_SKILL)
TYPE = verdict_pb2.Evidence(kind=verdict_pb2.EVIDENCE_KIND_ARTIFACT_TYPE)
RETRY = verdict_pb2.Judgement(
    verdict=verdict_pb2.VERDICT_CARD_CHANGED,
    advice=verdict_pb2.ADVICE_RETRY_WITH_RESOLUTION,
    evidence=[SKILL],
    resolution=resolution_pb2.Resolution(agent="agents/a", skill_fingerprint="d" * 64),
)
GONE = verdict_pb2.Judgement(
    verdict=verdict_pb2.VERDICT_CARD_CHANGED, advice=verdict_pb2.ADVICE_DO_NOT_RETRY, evidence=[SKILL]
)
CONTRADICTS = verdict_pb2.Judgement(verdict=verdict_pb2.VERDICT_AGENT_CONTRADICTS_CARD, evidence=[SKILL])
UNCONFIRMED = verdict_pb2.Judgement(verdict=verdict_pb2.VERDICT_UNCONFIRMED, advice=verdict_pb2.ADVICE_WAIT)
ACCEPTED = pb.ValidateArtifactResponse(accepted=True, judgement=CLEAR)
REJECTED = pb.ValidateArtifactResponse(
    judgement=verdict_pb2.Judgement(verdict=verdict_pb2.VERDICT_CARD_CHANGED, evidence=[TYPE])
)


class AgentError(Exception):
    """An HTTP client's error, in the shape that they share."""

    response = type("Response", (), {"status_code": 410, "content": b"{}"})()


def play(*answers: Any, validate: bool = True, seen: list[Step] | None = None) -> Any:
    """Run a guarded call; an answer that is an exception is thrown in. Return what the call returns."""
    steps = guarded(NEED, validate=validate)
    step = next(steps)
    if seen is not None:
        seen.append(step)
    try:
        for answer in answers:
            step = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
            if seen is not None:
                seen.append(step)
    except StopIteration as done:
        return done.value
    raise AssertionError(f"not over: {step}")


def kinds(steps: list[Step]) -> list[str]:
    return [type(step).__name__ for step in steps]


HELD = resolution("agents/a")


def test_what_the_agent_answered_is_reported_validated_and_returned() -> None:
    seen: list[Step] = []
    assert play(HELD, Ran(ANSWER), CLEAR, ACCEPTED, seen=seen) is ANSWER
    assert kinds(seen) == ["Resolve", "Run", "Report", "Validate"]
    report, validate = seen[2], seen[3]
    assert isinstance(report, Report)
    assert isinstance(validate, Validate)
    assert report.request.negotiated.skill_fingerprint == "a" * 64
    assert list(report.request.call.accepted_output_modes) == ["text/markdown"]
    assert report.request.call.protocol_version == "1.0"
    assert validate.request.artifact == report.request.document


def test_validation_can_be_left_out() -> None:
    seen: list[Step] = []
    assert play(HELD, Ran(ANSWER), CLEAR, validate=False, seen=seen) is ANSWER
    assert kinds(seen) == ["Resolve", "Run", "Report"]


def test_a_confirmed_change_that_still_serves_the_need_runs_once_more_with_the_fresh_card() -> None:
    seen: list[Step] = []
    assert play(HELD, Ran("old"), RETRY, Ran(ANSWER), CLEAR, ACCEPTED, seen=seen) is ANSWER
    assert kinds(seen) == ["Resolve", "Run", "Report", "Run", "Report", "Validate"]
    again = seen[3]
    assert isinstance(again, Run)
    assert again.resolution.skill_fingerprint == "d" * 64


def test_it_runs_at_most_twice() -> None:
    with pytest.raises(StaleAgentCardError):
        play(HELD, Ran("old"), RETRY, Ran("old"), RETRY)


@pytest.mark.parametrize(
    ("judgement", "kind"),
    [
        (GONE, StaleAgentCardError),
        (UNCONFIRMED, StaleAgentCardError),
        (CONTRADICTS, AgentContradictsCardError),
        (verdict_pb2.Judgement(verdict=77), StaleAgentCardError),  # type: ignore[arg-type] # of a later release
    ],
)
def test_drift_that_a_retry_does_not_help_is_raised_at_once(
    judgement: verdict_pb2.Judgement, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught:
        play(HELD, Ran(ANSWER), judgement)
    assert caught.value.answer is ANSWER  # type: ignore[attr-defined] # each of them has it


def test_an_artifact_that_is_rejected_goes_nowhere() -> None:
    with pytest.raises(ArtifactSchemaDriftError) as caught:
        play(HELD, Ran(ANSWER), CLEAR, REJECTED)
    assert caught.value.answer is ANSWER


@pytest.mark.parametrize("verdict", [verdict_pb2.VERDICT_CARD_CHANGED, verdict_pb2.VERDICT_AGENT_CONTRADICTS_CARD])
def test_whether_an_artifact_passes_is_for_its_validation_to_say(verdict: "verdict_pb2.Verdict.ValueType") -> None:
    odd = verdict_pb2.Judgement(verdict=verdict, evidence=[TYPE])
    assert play(HELD, Ran(ANSWER), odd, ACCEPTED) is ANSWER
    with pytest.raises(ArtifactSchemaDriftError):
        play(HELD, Ran(ANSWER), odd, REJECTED)


def test_without_validation_an_artifact_of_a_changed_card_is_drift_and_one_of_an_unchanged_card_is_not() -> None:
    changed = verdict_pb2.Judgement(verdict=verdict_pb2.VERDICT_CARD_CHANGED, evidence=[TYPE])
    with pytest.raises(ArtifactSchemaDriftError):
        play(HELD, Ran(ANSWER), changed, validate=False)
    habit = verdict_pb2.Judgement(verdict=verdict_pb2.VERDICT_AGENT_CONTRADICTS_CARD, evidence=[TYPE])
    assert play(HELD, Ran(ANSWER), habit, validate=False) is ANSWER


def test_a_summary_has_no_artifact_to_validate() -> None:
    summary = observation_pb2.TaskOutcomeSummary(task_state="completed")
    seen: list[Step] = []
    assert play(HELD, Ran(summary), CLEAR, seen=seen) is summary
    assert kinds(seen) == ["Resolve", "Run", "Report"]


def test_an_agents_error_is_reported_and_raised_again_where_it_is_no_sign_of_drift() -> None:
    failed = AgentError("410")
    with pytest.raises(AgentError) as caught:
        play(HELD, Ran(error=failed), CLEAR)
    assert caught.value is failed


def test_an_agents_error_that_is_drift_is_its_cause_and_heals_likewise() -> None:
    failed = AgentError("410")
    with pytest.raises(StaleAgentCardError) as caught:
        play(HELD, Ran(error=failed), GONE)
    assert caught.value.__cause__ is failed
    assert play(HELD, Ran(error=failed), RETRY, Ran(ANSWER), CLEAR, ACCEPTED) is ANSWER


def test_an_error_of_the_functions_own_is_raised_without_a_report() -> None:
    seen: list[Step] = []
    with pytest.raises(ZeroDivisionError):
        play(HELD, Ran(error=ZeroDivisionError()), seen=seen)
    assert kinds(seen) == ["Resolve", "Run"]


def test_without_a_resolution_nothing_runs() -> None:
    for error in (SkillRefusedError("no"), ServiceUnavailableError("away")):
        with pytest.raises(type(error)):
            play(error)


@pytest.mark.parametrize("reached", [(), (CLEAR,)], ids=["report", "validation"])
def test_an_answer_that_the_service_cannot_judge_is_not_lost_and_not_passed_off(reached: tuple[Any, ...]) -> None:
    with pytest.raises(NotJudgedError) as caught:
        play(HELD, Ran(ANSWER), *reached, ServiceUnavailableError("away"))
    assert caught.value.answer is ANSWER
    assert isinstance(caught.value.__cause__, ServiceUnavailableError)


def test_an_answer_in_no_known_form_is_not_lost() -> None:
    answer = object()
    with pytest.raises(NotJudgedError, match="reported") as caught:
        play(HELD, Ran(answer))
    assert caught.value.answer is answer


def test_an_agents_error_that_nobody_can_judge_keeps_its_cause_and_says_so() -> None:
    failed, cause = AgentError("410"), OSError("wire")
    failed.__cause__ = cause
    with pytest.raises(AgentError) as caught:
        play(HELD, Ran(error=failed), ServiceUnavailableError("away", code="UNAVAILABLE"))
    assert caught.value.__cause__ is cause
    assert caught.value.__notes__ == ["Cardkeeper could not judge it: UNAVAILABLE: away"]


def test_the_first_step_is_to_resolve_what_the_caller_needs() -> None:
    assert next(guarded(NEED, validate=True)) == Resolve(NEED)
