"""An agent that makes its ETag of `version`, as the specification allows, and so answers 304 to a silent mutation."""

import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from process import agent, service
from send import send_task

from cardkeeper_client import Cardkeeper, Resolution, SkillRefusedError, StaleAgentCardError

SKILL = "summarize-v2"


@pytest.fixture
def liar() -> Iterator[str]:
    with agent("--etag-from-version") as url:
        yield url


def counted(url: str, name: str) -> int:
    return int(httpx.get(f"{url}/admin/counts", timeout=5.0).json()[name])


def become(url: str, variant: str) -> None:
    httpx.post(f"{url}/admin/variant/{variant}", timeout=5.0).raise_for_status()


def run(resolution: Resolution) -> bytes:
    return send_task(resolution.endpoint_url, resolution.skill_id, protocol_version=resolution.protocol_version)


def ask(cards: Cardkeeper, url: str) -> Resolution | None:
    try:
        return cards.resolve(url, SKILL)
    except SkillRefusedError:
        return None


def asked_until(cards: Cardkeeper, url: str, done: Callable[[Resolution | None], bool]) -> None:
    """Ask for the skill again and again, as a busy client does, until something holds."""
    until = time.monotonic() + 20.0
    while not done(ask(cards, url)):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_evidence_sees_through_a_304_and_the_liar_is_not_asked_that_way_again(liar: str) -> None:
    with service("--soft-ttl", "1") as target, Cardkeeper(target) as cards:
        old = cards.resolve(liar, SKILL)
        become(liar, "A")
        asked_until(cards, liar, lambda _: counted(liar, "not_modified") >= 2)
        assert cards.resolve(liar, SKILL).skill_fingerprint == old.skill_fingerprint  # the lie is believed, so far

        with pytest.raises(StaleAgentCardError) as caught:
            cards.call(liar, SKILL, run)
        assert caught.value.judgement.changes.silent
        assert caught.value.near_skill_ids == ["summarize-v3"]

        lies = counted(liar, "not_modified")
        become(liar, "base")
        asked_until(cards, liar, lambda resolution: resolution is not None)
        assert counted(liar, "not_modified") == lies
