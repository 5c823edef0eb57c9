"""Needs, resolutions and requests: what is asked for, what is answered, and for how long it lasts."""

import dataclasses

import pytest
from google.protobuf import timestamp_pb2

from cardkeeper_client.need import Need
from cardkeeper_client.question import find_request, report_request, validate_request
from cardkeeper_client.resolution import Resolution
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import observation_pb2, resolution_pb2, revision_pb2
from client_values import resolution


def wire(freshness: "resolution_pb2.Freshness.ValueType" = resolution_pb2.FRESHNESS_FRESH) -> resolution_pb2.Resolution:
    return resolution_pb2.Resolution(
        agent="agents/a",
        agent_url="http://a.example",
        endpoint_url="http://a.example/rpc",
        input_modes=["text/plain"],
        revision=revision_pb2.Revision(epoch="e", sequence=7),
        verify_time=timestamp_pb2.Timestamp(seconds=1000, nanos=500_000_000),
        expire_time=timestamp_pb2.Timestamp(seconds=1300, nanos=500_000_000),
        freshness=freshness,
    )


def test_a_resolution_is_an_immutable_value() -> None:
    read = Resolution.of(wire())
    assert (read.agent, read.endpoint_url, read.input_modes) == ("agents/a", "http://a.example/rpc", ("text/plain",))
    assert (read.epoch, read.sequence, read.verified_at, read.expires_at) == ("e", 7, 1000.5, 1300.5)
    assert hash(read) == hash(Resolution.of(wire()))
    with pytest.raises(dataclasses.FrozenInstanceError):
        read.agent = "agents/b"  # type: ignore[misc] # what is refused


@pytest.mark.parametrize(
    ("freshness", "stale"),
    [("FRESH", False), ("STALE", True), ("SUSPECT", True), ("DEGRADED", True), ("UNSPECIFIED", True)],
)
def test_all_but_fresh_counts_as_stale(freshness: str, stale: bool) -> None:
    assert Resolution.of(wire(resolution_pb2.Freshness.Value(f"FRESHNESS_{freshness}"))).stale is stale


@pytest.mark.parametrize(
    ("now", "left"),
    [
        (1100.5, 200.0),
        (1300.5, 0.0),
        (5000.0, -3699.5),  # past, or a clock that is ahead: ask again
        (10.0, 300.0),  # a clock that is behind does not stretch it
    ],
)
def test_a_lifetime_ends_when_the_service_said_and_is_never_longer_than_granted(now: float, left: float) -> None:
    assert Resolution.of(wire()).lifetime_left(now) == left


def test_a_need_is_asked_for_in_the_callers_words() -> None:
    need = Need("http://A.example/", "s", ("text/plain",), ("image/png",), True, False)
    request = need.request()
    assert request.agent.agent_url == "http://A.example/"
    assert request.need == resolution_pb2.SkillNeed(
        skill_id="s", input_modes=["text/plain"], output_modes=["image/png"], streaming=True
    )
    assert not request.HasField("consistency")
    assert Need("agents/a", "s").request().agent.name == "agents/a"
    assert need.request(refetch=True).consistency.HasField("refetch")


def test_a_search_needs_no_agent() -> None:
    request = find_request("words", Need("", "s", output_modes=("image/png",)), ["tag"], 5)
    assert request == pb.FindSkillsRequest(
        query="words",
        tags=["tag"],
        page_size=5,
        need=resolution_pb2.SkillNeed(skill_id="s", output_modes=["image/png"]),
    )


def test_a_report_says_what_was_negotiated_and_how_the_task_was_asked_for() -> None:
    held = resolution("agents/a")
    plain = report_request(held, {"a": 1}, http_status=404)
    assert plain.negotiated == observation_pb2.Negotiated(agent="agents/a", skill_id="s", skill_fingerprint="a" * 64)
    assert (plain.document.json, plain.document.http_status, plain.call.protocol_version) == (b'{"a": 1}', 404, "1.0")
    more = report_request(held, {}, call=observation_pb2.TaskCall(method="message/send", protocol_version="0.3"))
    assert (more.call.method, more.call.protocol_version) == ("message/send", "0.3")
    needed = report_request(held, {}, need=Need("agents/a", "s", ("text/plain",), streaming=True))
    assert (list(needed.call.input_modes), needed.call.streaming) == (["text/plain"], True)


def test_what_has_no_content_goes_as_a_summary() -> None:
    held = resolution("agents/a")
    outcome = observation_pb2.TaskOutcomeSummary(task_state="failed", jsonrpc_code=-32601)
    assert report_request(held, outcome).summary == outcome
    parts = observation_pb2.ArtifactSummary(parts=[observation_pb2.ArtifactSummary.Part(media_type="text/plain")])
    asked = validate_request(held, parts, pb.ARTIFACT_POLICY_STRICT)
    assert (asked.summary, asked.policy) == (parts, pb.ARTIFACT_POLICY_STRICT)
    assert validate_request(held, "{}").artifact.json == b"{}"
