"""Resolutions for tests of the Python client, by what matters to its near cache."""

from cardkeeper_client.resolution import Resolution


def resolution(agent: str, skill: str = "s", epoch: str = "1", sequence: int = 1, *, stale: bool = False) -> Resolution:
    """What a service says of a skill in the state that the agent took at `sequence`."""
    return Resolution(
        agent=agent,
        agent_url=f"http://{agent.rpartition('/')[2]}.example",
        endpoint_url="",
        protocol_binding="JSONRPC",
        protocol_version="1.0",
        tenant="",
        skill_id=skill,
        input_modes=(),
        output_modes=(),
        streaming=False,
        push_notifications=False,
        skill_fingerprint="a" * 64,
        per_skill_fingerprint="b" * 64,
        card_digest="c" * 64,
        card_version="1",
        epoch=epoch,
        sequence=sequence,
        verified_at=0.0,
        expires_at=300.0,
        stale=stale,
    )
