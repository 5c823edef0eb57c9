"""Errors of the Python client: what they carry, and that one line tells it, whoever put the words in."""

import pickle

import pytest
from google.protobuf import duration_pb2

from cardkeeper_client import (
    AgentContradictsCardError,
    ArtifactSchemaDriftError,
    ClosedError,
    DriftError,
    ForkedError,
    NotJudgedError,
    ServiceError,
    ServiceUnavailableError,
    SkillRefusedError,
    StaleAgentCardError,
)
from cardkeeper_client.v1 import change_pb2, resolution_pb2, verdict_pb2
from client_values import resolution


def judgement() -> verdict_pb2.Judgement:
    return verdict_pb2.Judgement(
        verdict=verdict_pb2.VERDICT_CARD_CHANGED,
        advice=verdict_pb2.ADVICE_DO_NOT_RETRY,
        evidence=[
            verdict_pb2.Evidence(rule="unknown-skill.en", pointer="/status/message", observed="unknown skill: s"),
            verdict_pb2.Evidence(rule="state", observed="failed"),
        ],
        changes=change_pb2.ChangeSet(skill_fingerprint="d" * 64),
        near_skill_ids=["s2"],
        alternatives=[resolution_pb2.Resolution(agent="agents/b", agent_url="http://b.example", skill_id="s")],
        retry_delay=duration_pb2.Duration(seconds=2, nanos=500_000_000),
        message="the skill is gone",
    )


def test_a_drift_is_one_line_that_says_who_what_and_what_to_do() -> None:
    assert str(StaleAgentCardError(resolution("agents/a"), judgement())) == (
        "the skill is gone agent=http://a.example skill=s verdict=CARD_CHANGED advice=DO_NOT_RETRY "
        "fingerprint=aaaaaaaaaaaa->dddddddddddd "
        "evidence=[unknown-skill.en at /status/message: unknown skill: s; state at /: failed] "
        "near=s2 alternatives=http://b.example retry_after=2.5s"
    )


def test_a_drift_carries_everything_as_values() -> None:
    drift = StaleAgentCardError(resolution("agents/a"), judgement(), answer={"state": "failed"})
    assert (drift.agent, drift.skill_id, drift.verdict, drift.advice) == (
        "agents/a",
        "s",
        "CARD_CHANGED",
        "DO_NOT_RETRY",
    )
    assert (drift.previous_fingerprint, drift.current_fingerprint) == ("a" * 64, "d" * 64)
    assert [item.rule for item in drift.evidence] == ["unknown-skill.en", "state"]
    assert drift.near_skill_ids == ["s2"]
    assert [item.agent for item in drift.alternatives] == ["agents/b"]
    assert drift.retry_after == 2.5
    assert drift.answer == {"state": "failed"}


def test_what_is_not_known_is_left_out() -> None:
    line = str(StaleAgentCardError(resolution("agents/a"), verdict_pb2.Judgement(verdict=4, advice=4)))
    assert line == (
        "StaleAgentCardError agent=http://a.example skill=s verdict=UNCONFIRMED advice=WAIT fingerprint=aaaaaaaaaaaa->?"
    )


def test_a_verdict_and_an_advice_yet_unknown_are_what_the_contract_says_to_take_them_for() -> None:
    drift = StaleAgentCardError(resolution("agents/a"), verdict_pb2.Judgement(verdict=77, advice=78))  # type: ignore[arg-type] # of a later release
    assert (drift.verdict, drift.advice) == ("UNCONFIRMED", "DO_NOT_RETRY")
    assert "verdict=UNCONFIRMED" in str(drift)


def test_many_of_a_kind_are_cut_and_said_to_be() -> None:
    many = judgement()
    many.near_skill_ids.extend(["s3", "s4", "s5"])
    assert "near=s2,s3,s4,… 1 more" in str(StaleAgentCardError(resolution("agents/a"), many))


@pytest.mark.parametrize("word", ["a\nFAKE log line", "\r\n", "\x1b[31m", "\u202e", "\x00", "\u2028", "\ud800"])
def test_no_word_of_a_stranger_breaks_out_of_the_line(word: str) -> None:
    said = verdict_pb2.Judgement(message=word.encode("utf-8", "replace").decode())
    for error in (
        StaleAgentCardError(resolution("agents/a", skill=word), said),
        ServiceError(word, reason="CARD_INVALID"),
        NotJudgedError(word),
    ):
        assert str(error).isprintable()
        str(error).encode()


def test_words_of_every_language_stay_readable() -> None:
    assert str(ServiceError("技能不存在 – é", reason="X")) == "X: 技能不存在 – é"


@pytest.mark.parametrize("kind", [StaleAgentCardError, ArtifactSchemaDriftError, AgentContradictsCardError])
def test_a_drift_survives_pickling_without_the_answer(kind: type[DriftError]) -> None:
    drift = kind(resolution("agents/a"), judgement(), answer=lambda: "not picklable")
    copy = pickle.loads(pickle.dumps(drift))  # noqa: S301 - our own bytes
    assert type(copy) is kind
    assert str(copy) == str(drift)
    assert copy.negotiated == drift.negotiated
    assert copy.answer is None


def test_refusals_survive_pickling_with_all_that_they_say() -> None:
    refused = SkillRefusedError("no", reason="SKILL_NOT_ADVERTISED", code="NOT_FOUND", metadata={"agent": "a"})
    refused.near, refused.advertised, refused.offered = ("s2",), ("s2", "t"), ()
    away = ServiceUnavailableError("gone", code="UNAVAILABLE", retry_after=1.0)
    wrong = ServiceError("no", reason="INVALID_REQUEST", fields={"need.skill_id": "is required"})
    for error in (refused, away, wrong, NotJudgedError("m", {"a": 1}), ClosedError(), ForkedError()):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert type(copy) is type(error)
        assert str(copy) == str(error)
    copy = pickle.loads(pickle.dumps(refused))  # noqa: S301 - our own bytes
    assert (copy.near, copy.advertised, copy.metadata) == (("s2",), ("s2", "t"), {"agent": "a"})
    assert pickle.loads(pickle.dumps(wrong)).fields == {"need.skill_id": "is required"}  # noqa: S301 - our own bytes


def test_an_error_without_a_reason_goes_by_its_code() -> None:
    assert str(ServiceError("no route", code="UNAVAILABLE", retry_after=1.25)) == (
        "UNAVAILABLE: no route (retry after 1.2 s)"
    )
