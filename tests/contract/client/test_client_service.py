"""The Python client's connection to the real service: TLS, search filters, reports that count once."""

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import trustme
from a2a.utils.errors import InvalidParamsError

from cardkeeper.settings import Settings
from cardkeeper_client import CardkeeperAsync, Resolution, ServiceUnavailableError, StaleAgentCardError
from cardkeeper_client.v1 import observation_pb2, verdict_pb2
from contract_requests import failed_task
from running_service import Running, running_service
from scripted_fetcher import ScriptedFetcher, card_document

AGENT, OTHER = "http://agent.example", "http://other.example"


@pytest.fixture
def fetcher() -> ScriptedFetcher:
    fetcher = ScriptedFetcher()
    fetcher.answers[AGENT] = card_document("summarize", "translate")
    return fetcher


@pytest.fixture
async def service(fetcher: ScriptedFetcher) -> AsyncIterator[Running]:
    async with running_service(fetcher=fetcher) as running:
        yield running


@pytest.fixture
async def cards(service: Running) -> AsyncIterator[CardkeeperAsync]:
    async with CardkeeperAsync(service.target) as client:
        yield client


async def test_a_search_can_be_narrowed_by_what_is_needed(cards: CardkeeperAsync, fetcher: ScriptedFetcher) -> None:
    fetcher.answers[OTHER] = card_document({"id": "summarize", "name": "s", "outputModes": ["image/png"]})
    await cards.resolve(AGENT, "summarize")
    await cards.resolve(OTHER, "summarize")
    assert {found.agent_url for found in await cards.find(skill_id="summarize")} == {AGENT, OTHER}
    assert [found.agent_url for found in await cards.find(skill_id="summarize", output_modes=["image/png"])] == [OTHER]
    assert [found.skill_id for found in await cards.find("translate")] == ["translate"]
    assert len(await cards.find(limit=1)) == 1


async def test_an_error_of_the_a2a_sdk_is_evidence_like_any_other(
    cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    async def refused(resolution: Resolution) -> None:
        fetcher.answers[AGENT] = card_document("translate")
        raise InvalidParamsError("Unknown skill: summarize")

    with pytest.raises(StaleAgentCardError) as caught:
        await cards.call(AGENT, "summarize", refused)
    assert caught.value.verdict == "CARD_CHANGED"
    assert [item.kind for item in caught.value.evidence] == [verdict_pb2.EVIDENCE_KIND_UNKNOWN_SKILL]
    assert isinstance(caught.value.__cause__, InvalidParamsError)


async def test_how_the_task_was_asked_for_sharpens_the_judgement(cards: CardkeeperAsync) -> None:
    held = await cards.resolve(AGENT, "summarize")
    own_mistake = observation_pb2.TaskCall(input_modes=["image/tiff"])
    refusal = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32005, "message": "Incompatible content types"}}
    judgement = await cards.report(held, refusal, call=own_mistake)
    assert judgement.verdict == verdict_pb2.VERDICT_NO_DRIFT


async def test_an_answer_judged_as_stale_is_not_given_again_before_the_stream_tells(
    cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    await cards.wait_until_in_sync()
    held = await cards.resolve(AGENT, "summarize")
    fetcher.answers[AGENT] = card_document({"id": "summarize", "name": "s", "outputModes": ["text/plain"]})
    with pytest.raises(StaleAgentCardError):
        await cards.report(held, failed_task("unknown skill: summarize"))
    assert (await cards.resolve(AGENT, "summarize")).skill_fingerprint != held.skill_fingerprint


async def test_over_tls_it_talks_to_whom_its_roots_vouch_for_and_to_nobody_else(
    fetcher: ScriptedFetcher, tmp_path: Path
) -> None:
    ours, strangers = trustme.CA(), trustme.CA()
    certificate = ours.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(chain)
    certificate.private_key_pem.write_to_path(key)
    async with running_service(Settings(tls_certificate=chain, tls_key=key), fetcher=fetcher) as service:
        trusted = grpc.ssl_channel_credentials(root_certificates=ours.cert_pem.bytes())
        async with CardkeeperAsync(service.target, credentials=trusted) as cards:
            assert await cards.wait_until_in_sync()
            assert (await cards.resolve(AGENT, "summarize")).skill_id == "summarize"
        wrong = grpc.ssl_channel_credentials(root_certificates=strangers.cert_pem.bytes())
        async with CardkeeperAsync(service.target, credentials=wrong, timeout=2.0) as cards:
            with pytest.raises(ServiceUnavailableError):
                await cards.resolve(AGENT, "summarize")
