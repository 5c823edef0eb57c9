"""Wrong requests and wrong cards over a real channel and real HTTP: typed errors, and nothing is lost."""

import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from card_server import CARD, LEGACY_CARD, CardServer, Reply, card_server
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.settings import Settings
from cardkeeper.v1 import agent_ref_pb2, fleet_service_pb2, observation_pb2, resolution_pb2, verdict_pb2
from cardkeeper.v1 import discovery_service_pb2 as pb
from contract_requests import negotiated, ref, report, resolve, subscribe, text_artifact, validate
from rpc_errors import failure
from running_service import Running, running_service
from scripted_fetcher import card_document

Code = grpc.StatusCode


@pytest.fixture
async def agent() -> AsyncIterator[CardServer]:
    async with card_server() as served:
        served.serve(card_document("summarize-v2"))
        yield served


@pytest.fixture
async def keeper() -> AsyncIterator[Running]:
    async with running_service(Settings(egress=EgressPolicy(allow_loopback=True))) as running:
        yield running


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", ""),
        ("agent.example.com", "scheme"),
        ("ftp://agent.example.com", "http"),
        ("http://", "host"),
        ("http://user:secret@agent.example.com", "password"),
        ("http://agent.example.com:99999", "port"),
        ("http://agent.example.com/a b", "space"),
        ("http://agent.example.com/?q=1", "query"),
        ("http://agent.example.com/#f", "fragment"),
        ("http://2130706433/", "numeric"),
        ("http://" + "a" * 3000, ""),
    ],
)
async def test_a_url_that_is_none_is_an_invalid_argument_that_says_what_to_fix(
    keeper: Running, url: str, says: str
) -> None:
    request = pb.ResolveSkillRequest(
        agent=agent_ref_pb2.AgentRef(agent_url=url), need=resolution_pb2.SkillNeed(skill_id="s")
    )
    failed = await failure(keeper.discovery.ResolveSkill(request))
    assert (failed.code, failed.reason) == (Code.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert failed.fields
    assert says in " ".join([failed.message, *failed.fields.values()])
    assert "secret" not in failed.message


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.ResolveSkillRequest(), "agent"),
        (pb.ResolveSkillRequest(agent=ref("http://a.example")), "need"),
        (resolve("http://a.example", ""), "need"),
        (resolve("http://a.example", "x" * 5000), "need.skill_id"),
        (resolve("agents/NOT A NAME", "s"), "agent.name"),
    ],
)
async def test_a_missing_or_malformed_field_is_named(
    keeper: Running, request_: pb.ResolveSkillRequest, field: str
) -> None:
    failed = await failure(keeper.discovery.ResolveSkill(request_))
    assert (failed.code, failed.reason) == (Code.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert any(name.startswith(field) for name in failed.fields), failed.fields


async def test_bytes_that_are_no_message_are_an_invalid_argument(keeper: Running) -> None:
    call = keeper.channel.unary_unary("/cardkeeper.v1.DiscoveryService/ResolveSkill")(b"\xff\xff\xff\xff")
    failed = await failure(call)
    assert (failed.code, failed.reason) == (Code.INVALID_ARGUMENT, "INVALID_REQUEST")


async def test_an_unknown_method_is_unimplemented(keeper: Running) -> None:
    call = keeper.channel.unary_unary("/cardkeeper.v1.DiscoveryService/Nonsense")(b"")
    assert (await failure(call)).code is Code.UNIMPLEMENTED


async def test_an_unknown_skill_names_the_near_ones_and_the_advertised(keeper: Running, agent: CardServer) -> None:
    failed = await failure(keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v3")))
    assert (failed.code, failed.reason) == (Code.NOT_FOUND, "SKILL_NOT_ADVERTISED")
    assert list(failed.refusal.near_skill_ids) == ["summarize-v2"]
    assert list(failed.refusal.advertised_skill_ids) == ["summarize-v2"]


async def test_modes_and_capabilities_that_are_not_offered_are_told_apart(keeper: Running, agent: CardServer) -> None:
    wrong_mode = resolve(agent.url, "summarize-v2", output_modes=["image/png"])
    failed = await failure(keeper.discovery.ResolveSkill(wrong_mode))
    assert (failed.code, failed.reason) == (Code.FAILED_PRECONDITION, "MODE_NOT_OFFERED")
    failed = await failure(keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v2", push_notifications=True)))
    assert (failed.code, failed.reason) == (Code.FAILED_PRECONDITION, "CAPABILITY_ABSENT")


async def test_an_unknown_agent_and_an_unknown_fingerprint_are_not_found(keeper: Running, agent: CardServer) -> None:
    failed = await failure(keeper.discovery.ResolveSkill(resolve("agents/nobody-12345678", "s")))
    assert (failed.code, failed.reason) == (Code.NOT_FOUND, "AGENT_UNKNOWN")
    resolution = (await keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v2"))).resolution
    resolution.skill_fingerprint = "0" * 64
    for call in (
        keeper.discovery.ReportTaskOutcome(report(resolution, {"kind": "task", "status": {"state": "completed"}})),
        keeper.discovery.ValidateArtifact(validate(resolution, text_artifact())),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == (Code.NOT_FOUND, "SNAPSHOT_UNKNOWN")


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"not json",
        b"<html></html>",
        b"\xff\xfe",
        b"[" * 100_000,
        b"NaN",
        b'{"a": 1e999}',
        b'"' + b"x" * 1_100_000 + b'"',
        b"{}",
        b"17",
    ],
)
async def test_a_report_or_artifact_that_cannot_be_read_says_so_and_causes_no_fetch(
    keeper: Running, agent: CardServer, document: bytes
) -> None:
    resolution = (await keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v2"))).resolution
    held = negotiated(resolution)
    sent = observation_pb2.Document(json=document)
    for call in (
        keeper.discovery.ReportTaskOutcome(pb.ReportTaskOutcomeRequest(negotiated=held, document=sent)),
        keeper.discovery.ValidateArtifact(pb.ValidateArtifactRequest(negotiated=held, artifact=sent)),
    ):
        failed = await failure(call)
        assert failed.code is Code.INVALID_ARGUMENT
        assert failed.reason in {"DOCUMENT_UNREADABLE", "INVALID_REQUEST"}
    assert agent.counts[CARD] == 1


async def test_a_payload_beyond_every_limit_is_refused_by_the_transport(keeper: Running, agent: CardServer) -> None:
    resolution = (await keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v2"))).resolution
    huge = observation_pb2.Document(json=b'"' + b"x" * (5 << 20) + b'"')
    request = pb.ReportTaskOutcomeRequest(negotiated=negotiated(resolution), document=huge)
    assert (await failure(keeper.discovery.ReportTaskOutcome(request))).code is Code.RESOURCE_EXHAUSTED
    assert (await keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v2"))).resolution == resolution


async def test_an_enum_value_that_nobody_knows_counts_as_the_contract_says(keeper: Running, agent: CardServer) -> None:
    resolution = (await keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v2"))).resolution
    request = validate(resolution, text_artifact("text/markdown"))
    request.policy = 77  # type: ignore[assignment]  # what a newer client may send
    assert (await keeper.discovery.ValidateArtifact(request)).accepted
    watch = keeper.discovery.WatchInvalidations()
    await watch.write(subscribe(agent.url, min_severity=77))
    assert (await watch.read()).WhichOneof("event") == "synced"
    watch.cancel()


@pytest.mark.parametrize(
    "steps",
    [
        [subscribe(id=0)],
        [subscribe(id=-1)],
        [pb.WatchInvalidationsRequest()],
        [subscribe("http://user:pw@a.example")],
        [subscribe(held=[{"agent": "not a name", "skill_fingerprint": "x"}])],
    ],
)
async def test_a_wrong_step_ends_the_stream_with_an_invalid_argument(
    keeper: Running, steps: list[pb.WatchInvalidationsRequest]
) -> None:
    watch = keeper.discovery.WatchInvalidations()
    for step in steps:
        await watch.write(step)
    failed = await failure(watch.read())
    assert (failed.code, failed.reason) == (Code.INVALID_ARGUMENT, "INVALID_REQUEST")


LIST = json.dumps([card_document("summarize-v2")]).encode()
HTML = b"<!doctype html><title>app</title>"
BAD_CARDS: list[tuple[str, dict[str, Reply], str]] = [
    ("404 on both paths", {}, "CARD_UNREACHABLE"),
    ("500", {CARD: Reply(b"", 500)}, "CARD_UNREACHABLE"),
    ("HTML on both paths", {CARD: Reply(HTML), LEGACY_CARD: Reply(HTML)}, "CARD_INVALID"),
    ("a list", {CARD: Reply(LIST)}, "CARD_INVALID"),
    ("10 MB", {CARD: Reply(b'{"name": "' + b"x" * 10_000_000 + b'"}')}, "CARD_INVALID"),
    ("not JSON", {CARD: Reply(b"{")}, "CARD_INVALID"),
    ("nothing", {CARD: Reply(b"")}, "CARD_INVALID"),
    ("NaN", {CARD: Reply(b'{"skills": NaN}')}, "CARD_INVALID"),
    ("too deep", {CARD: Reply(b'{"a":' * 5000 + b"1" + b"}" * 5000)}, "CARD_INVALID"),
    ("an empty object", {CARD: Reply(b"{}")}, "CARD_INVALID"),
]


@pytest.mark.parametrize(("what", "replies", "reason"), BAD_CARDS, ids=[case[0] for case in BAD_CARDS])
async def test_a_card_that_is_none_is_a_typed_refusal(
    keeper: Running, agent: CardServer, what: str, replies: dict[str, Reply], reason: str
) -> None:
    agent.replies = replies
    failed = await failure(keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v2")))
    assert (failed.code, failed.reason) == (Code.FAILED_PRECONDITION, reason), failed.message
    assert failed.retry_after is not None


@pytest.mark.parametrize(("what", "replies", "reason"), BAD_CARDS, ids=[case[0] for case in BAD_CARDS])
async def test_the_last_good_card_is_kept_while_its_source_serves_nonsense(
    keeper: Running, agent: CardServer, what: str, replies: dict[str, Reply], reason: str
) -> None:
    resolution = (await keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v2"))).resolution
    agent.replies = replies
    refresh: Any = keeper.fleet.RefreshAgent(fleet_service_pb2.RefreshAgentRequest(agent=ref(agent.url)))
    failed = await failure(refresh)
    assert (failed.code, failed.reason) == (Code.FAILED_PRECONDITION, reason), failed.message
    again = (await keeper.discovery.ResolveSkill(resolve(agent.url, "summarize-v2"))).resolution
    assert again.skill_fingerprint == resolution.skill_fingerprint
    assert again.revision == resolution.revision
    good = await keeper.discovery.ValidateArtifact(validate(resolution, text_artifact("text/markdown")))
    assert (good.accepted, good.judgement.verdict) == (True, verdict_pb2.VERDICT_NO_DRIFT)


async def test_a_private_address_is_refused_by_policy_and_the_rule_is_named(agent: CardServer) -> None:
    async with running_service(Settings()) as strict:
        for url in (agent.url, "http://localhost:1", "http://169.254.169.254", "http://[::1]:1"):
            failed = await failure(strict.discovery.ResolveSkill(resolve(url, "s")))
            assert (failed.code, failed.reason) == (Code.PERMISSION_DENIED, "EGRESS_REFUSED"), failed
            assert failed.metadata["rule"]
    assert not agent.counts
