"""The loop over a real channel: resolve, observe, settle, push, heal."""

import asyncio

import grpc
import pytest

from cardkeeper.clock import ManualClock
from cardkeeper.errors import CardUnavailable
from cardkeeper.v1 import discovery_service_pb2 as pb
from cardkeeper.v1 import fleet_service_pb2, observation_pb2, revision_pb2, verdict_pb2
from contract_requests import (
    failed_task,
    negotiated,
    ref,
    report,
    resolve,
    subscribe,
    text_artifact,
    validate,
)
from rpc_errors import failure
from running_service import Running, running_service
from scripted_fetcher import ScriptedFetcher, card_document

URL = "http://agent.example"
GONE = failed_task("unknown skill: summarize-v2")
FINE = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}


async def resolved(service: Running) -> "pb.resolution__pb2.Resolution":  # type: ignore[name-defined]
    return (await service.discovery.ResolveSkill(resolve(URL, "summarize-v2"))).resolution


async def test_a_resolution_carries_what_was_negotiated(service: Running) -> None:
    resolution = await resolved(service)
    assert resolution.agent_url == URL
    assert resolution.endpoint_url == "https://peer.example.com/a2a"
    assert (resolution.protocol_binding, resolution.protocol_version) == ("JSONRPC", "1.0")
    assert (list(resolution.input_modes), list(resolution.output_modes)) == (["text/plain"], ["text/markdown"])
    assert resolution.streaming
    assert len(resolution.skill_fingerprint) == len(resolution.card_digest) == 64
    assert resolution.revision.sequence == 1
    assert resolution.revision.epoch


async def test_hot_resolves_ask_the_agent_nothing(service: Running, fetcher: ScriptedFetcher) -> None:
    answers = [await resolved(service) for _ in range(50)]
    assert fetcher.count(URL) == 1
    assert all(answer == answers[0] for answer in answers)


async def test_a_thousand_cold_resolves_cause_one_fetch(service: Running, fetcher: ScriptedFetcher) -> None:
    fetcher.hold()
    calls = [asyncio.ensure_future(service.discovery.ResolveSkill(resolve(URL, "summarize-v2"))) for _ in range(1000)]
    await asyncio.sleep(0.5)
    fetcher.release()
    answers = await asyncio.gather(*calls)
    assert fetcher.count(URL) == 1
    assert len({answer.resolution.skill_fingerprint for answer in answers}) == 1


async def test_variant_a_is_confirmed_and_says_that_the_skill_is_gone(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    fetcher.answers[URL] = card_document("summarize-v3", "translate")
    judgement = (await service.discovery.ReportTaskOutcome(report(resolution, GONE))).judgement
    assert judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED
    assert judgement.advice == verdict_pb2.ADVICE_DO_NOT_RETRY
    assert judgement.evidence[0].kind == verdict_pb2.EVIDENCE_KIND_UNKNOWN_SKILL
    assert judgement.near_skill_ids[0] == "summarize-v3"
    assert judgement.changes.silent
    assert fetcher.count(URL) == 2
    refused = await failure(service.discovery.ResolveSkill(resolve(URL, "summarize-v2")))
    assert (refused.code, refused.reason) == (grpc.StatusCode.NOT_FOUND, "SKILL_NOT_ADVERTISED")


async def test_a_card_that_still_serves_the_need_is_returned_for_a_retry(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    moved = card_document("summarize-v2")
    moved["supportedInterfaces"][0]["url"] = "https://new.example.com/a2a"
    fetcher.answers[URL] = moved
    judgement = (await service.discovery.ReportTaskOutcome(report(resolution, GONE))).judgement
    assert judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED
    assert judgement.advice == verdict_pb2.ADVICE_RETRY_WITH_RESOLUTION
    assert judgement.resolution.endpoint_url == "https://new.example.com/a2a"
    assert judgement.resolution.revision.sequence == 2


async def test_another_agent_that_serves_the_need_is_named(service: Running, fetcher: ScriptedFetcher) -> None:
    other = "http://other.example"
    fetcher.answers[other] = card_document("summarize-v2")
    await service.discovery.ResolveSkill(resolve(other, "summarize-v2"))
    resolution = await resolved(service)
    fetcher.answers[URL] = card_document("translate")
    judgement = (await service.discovery.ReportTaskOutcome(report(resolution, GONE))).judgement
    assert [item.agent_url for item in judgement.alternatives] == [other]


async def test_evidence_against_an_unchanged_card_is_a_contradiction_and_invalidates_nothing(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    judgement = (await service.discovery.ReportTaskOutcome(report(resolution, GONE))).judgement
    assert judgement.verdict == verdict_pb2.VERDICT_AGENT_CONTRADICTS_CARD
    assert judgement.advice == verdict_pb2.ADVICE_DO_NOT_RETRY
    assert (await resolved(service)).revision == resolution.revision
    events = (await service.fleet.ListDriftEvents(fleet_service_pb2.ListDriftEventsRequest())).drift_events
    assert [item.verdict for item in events] == [verdict_pb2.VERDICT_AGENT_CONTRADICTS_CARD]
    assert events[0].skill_id == "summarize-v2"


async def test_no_evidence_means_no_fetch(service: Running, fetcher: ScriptedFetcher) -> None:
    resolution = await resolved(service)
    judgement = (await service.discovery.ReportTaskOutcome(report(resolution, FINE))).judgement
    assert judgement.verdict == verdict_pb2.VERDICT_NO_DRIFT
    assert judgement.advice == verdict_pb2.ADVICE_PROCEED
    assert fetcher.count(URL) == 1


async def test_a_thousand_reports_of_one_failure_cause_one_fetch(service: Running, fetcher: ScriptedFetcher) -> None:
    resolution = await resolved(service)
    fetcher.answers[URL] = card_document("translate")
    calls = [service.discovery.ReportTaskOutcome(report(resolution, GONE)) for _ in range(1000)]
    verdicts = {answer.judgement.verdict for answer in await asyncio.gather(*calls)}
    assert verdicts == {verdict_pb2.VERDICT_CARD_CHANGED}
    assert fetcher.count(URL) == 2


async def test_a_liar_causes_a_bounded_few_fetches_and_never_an_invalidation(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    outcomes = [
        GONE,
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "Streaming is not supported by the agent"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}},
    ]
    for number in range(300):
        lie = report(resolution, outcomes[number % 3])
        lie.call.method, lie.call.streaming = "SendMessage", True
        lie.negotiated.skill_id = ("summarize-v2", "translate")[number % 2]
        await service.discovery.ReportTaskOutcome(lie)
    assert fetcher.count(URL) <= 1 + service.app.settings.fleet.agent_refetch_burst
    assert (await resolved(service)).revision == resolution.revision


async def test_an_agent_that_cannot_be_fetched_becomes_suspect_and_heals(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    fetcher.answers[URL] = CardUnavailable("gone", metadata={"cause": "connect"})
    judgement = (await service.discovery.ReportTaskOutcome(report(resolution, GONE))).judgement
    assert judgement.verdict == verdict_pb2.VERDICT_UNCONFIRMED
    assert judgement.advice == verdict_pb2.ADVICE_WAIT
    assert judgement.retry_delay.ToTimedelta().total_seconds() > 0
    refused = await failure(service.discovery.ResolveSkill(resolve(URL, "summarize-v2")))
    assert (refused.code, refused.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CARD_SUSPECT")
    assert refused.retry_after is not None
    fetcher.answers[URL] = card_document("summarize-v2", "translate")
    async with asyncio.timeout(10):
        while service.app.registry.by_id(resolution.agent.removeprefix("agents/")).record.suspicion:  # type: ignore[union-attr]
            await asyncio.sleep(0.1)
    assert (await resolved(service)).skill_fingerprint == resolution.skill_fingerprint


async def test_artifacts_are_judged_by_the_negotiated_snapshot_after_the_card_changed(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    changed = card_document({"id": "summarize-v2", "name": "s", "outputModes": ["text/plain"]})
    fetcher.answers[URL] = changed
    await service.fleet.RefreshAgent(fleet_service_pb2.RefreshAgentRequest(agent=ref(URL)))
    good = await service.discovery.ValidateArtifact(validate(resolution, text_artifact("text/markdown")))
    assert good.accepted
    bad = await service.discovery.ValidateArtifact(validate(resolution, text_artifact("text/plain")))
    assert not bad.accepted
    assert bad.judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED


async def test_variant_b_is_caught_before_the_artifact_goes_anywhere(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    fetcher.answers[URL] = card_document({"id": "summarize-v2", "name": "s", "outputModes": ["text/plain"]})
    verdict = await service.discovery.ValidateArtifact(validate(resolution, text_artifact("text/plain")))
    assert not verdict.accepted
    assert verdict.parts[0].result == pb.ValidateArtifactResponse.RESULT_REJECTED
    assert verdict.judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED
    assert verdict.judgement.evidence[0].kind == verdict_pb2.EVIDENCE_KIND_ARTIFACT_TYPE


@pytest.mark.parametrize(
    ("policy", "accepted"),
    [
        (pb.ARTIFACT_POLICY_UNSPECIFIED, True),
        (pb.ARTIFACT_POLICY_CONFIRM, True),
        (pb.ARTIFACT_POLICY_LENIENT, True),
        (pb.ARTIFACT_POLICY_STRICT, False),
    ],
)
async def test_untyped_text_of_an_agent_that_always_sent_it(
    service: Running, policy: "pb.ArtifactPolicy.ValueType", accepted: bool
) -> None:
    resolution = await resolved(service)
    verdict = await service.discovery.ValidateArtifact(validate(resolution, text_artifact(), policy=policy))
    assert verdict.accepted is accepted
    assert verdict.parts[0].result == pb.ValidateArtifactResponse.RESULT_UNTYPED


async def test_an_agent_that_always_sends_untyped_text_passes_at_any_rate_with_few_fetches(
    fetcher: ScriptedFetcher,
) -> None:
    clock = ManualClock()
    completed = FINE | {"artifacts": [text_artifact()]}
    async with running_service(fetcher=fetcher, clock=clock) as service:
        resolution = await resolved(service)
        for _ in range(120):
            clock.advance(2.0)
            assert (await service.discovery.ValidateArtifact(validate(resolution, text_artifact()))).accepted
            judgement = (await service.discovery.ReportTaskOutcome(report(resolution, completed))).judgement
            assert judgement.verdict == verdict_pb2.VERDICT_NO_DRIFT
            assert [item.rule for item in judgement.evidence] == ["artifact.untyped"]
        fleet = service.app.settings.fleet
        assert fetcher.count(URL) <= 2 + fleet.agent_refetch_burst + 240 / fleet.agent_refetch_interval
        assert not (await service.fleet.ListDriftEvents(fleet_service_pb2.ListDriftEventsRequest())).drift_events


async def test_untyped_text_is_rejected_where_the_card_changed_or_cannot_be_fetched(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    fetcher.answers[URL] = CardUnavailable("gone")
    verdict = await service.discovery.ValidateArtifact(validate(resolution, text_artifact()))
    assert (verdict.accepted, verdict.judgement.verdict) == (False, verdict_pb2.VERDICT_UNCONFIRMED)
    fetcher.answers[URL] = card_document({"id": "summarize-v2", "name": "s", "outputModes": ["text/plain"]})
    await asyncio.sleep(2.5)
    verdict = await service.discovery.ValidateArtifact(validate(resolution, text_artifact()))
    assert (verdict.accepted, verdict.judgement.verdict) == (False, verdict_pb2.VERDICT_CARD_CHANGED)


async def test_a_second_client_learns_of_the_drift_by_push_without_a_fetch(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    watch = service.discovery.WatchInvalidations()
    await watch.write(subscribe(URL, include_resolutions=[resolve(URL, "translate").need]))
    synced = await watch.read()
    assert (synced.WhichOneof("event"), synced.synced.agent_count) == ("synced", 1)
    fetcher.answers[URL] = card_document("translate")
    await service.discovery.ReportTaskOutcome(report(resolution, GONE))
    frame = await asyncio.wait_for(watch.read(), 5)
    told = frame.invalidation
    assert told.agent == resolution.agent
    assert told.changes.previous_skill_fingerprint == resolution.skill_fingerprint
    assert told.changes.silent
    assert list(told.skill_ids) == ["summarize-v2"]
    assert [item.skill_id for item in told.resolutions] == ["translate"]
    assert frame.revision.sequence == told.agent_revision.sequence == 2
    assert fetcher.count(URL) == 2
    watch.cancel()


async def test_a_report_with_the_same_id_is_answered_the_same_and_counted_once(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    resolution = await resolved(service)
    request = report(resolution, GONE, request_id="6f1c0f0e-0000-4000-8000-000000000001")
    first = await service.discovery.ReportTaskOutcome(request)
    fetcher.answers[URL] = card_document("translate")
    again = await service.discovery.ReportTaskOutcome(request)
    assert again == first
    assert service.app.statistics.judgements == 1


async def test_consistency(service: Running, fetcher: ScriptedFetcher) -> None:
    resolution = await resolved(service)
    request = resolve(URL, "summarize-v2")
    request.consistency.refetch.SetInParent()
    await service.discovery.ResolveSkill(request)
    assert fetcher.count(URL) == 2
    request.consistency.at_least_as_fresh.CopyFrom(resolution.revision)
    await service.discovery.ResolveSkill(request)
    assert fetcher.count(URL) == 2
    request.consistency.at_least_as_fresh.sequence = 99
    assert (await failure(service.discovery.ResolveSkill(request))).reason == "REVISION_NOT_REACHED"
    request.consistency.at_least_as_fresh.epoch = "other"
    assert (await failure(service.discovery.ResolveSkill(request))).reason == "EPOCH_CHANGED"
    request.consistency.CopyFrom(revision_pb2.Consistency())
    request.consistency.max_age.FromMilliseconds(0)
    await service.discovery.ResolveSkill(request)
    assert fetcher.count(URL) == 3


async def test_a_silent_lying_validator_is_believed_only_until_it_is_caught(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    fetcher.etags[URL] = '"1.0"'
    resolution = await resolved(service)
    fetcher.answers[URL] = card_document("translate")
    request = resolve(URL, "summarize-v2")
    request.consistency.max_age.FromMilliseconds(0)
    assert (await service.discovery.ResolveSkill(request)).resolution.revision == resolution.revision
    judgement = (await service.discovery.ReportTaskOutcome(report(resolution, GONE))).judgement
    assert judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED
    assert fetcher.requests[-1].etag == ""
    request.need.skill_id = "translate"
    await service.discovery.ResolveSkill(request)
    assert fetcher.requests[-1].etag == ""


async def test_a_content_free_summary_is_judged_too(service: Running, fetcher: ScriptedFetcher) -> None:
    resolution = await resolved(service)
    fetcher.answers[URL] = card_document("translate")
    summary = observation_pb2.TaskOutcomeSummary(task_state="completed", artifact_media_types=["text/plain"])
    request = pb.ReportTaskOutcomeRequest(negotiated=negotiated(resolution), summary=summary)
    judgement = (await service.discovery.ReportTaskOutcome(request)).judgement
    assert judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED
    assert judgement.evidence[0].kind == verdict_pb2.EVIDENCE_KIND_ARTIFACT_TYPE
