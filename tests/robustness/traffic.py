"""What the rest of the world does meanwhile: operators, reporters and resolvers."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc

from cardkeeper_client.v1 import agent_ref_pb2, observation_pb2, resolution_pb2
from cardkeeper_client.v1.discovery_service_pb2 import ReportTaskOutcomeRequest, ResolveSkillRequest
from cardkeeper_client.v1.discovery_service_pb2_grpc import DiscoveryServiceStub
from cardkeeper_client.v1.fleet_service_pb2 import RefreshAgentRequest, RegisterAgentRequest, UnregisterAgentRequest
from cardkeeper_client.v1.fleet_service_pb2_grpc import FleetServiceStub
from robustness.watcher import FORBIDDEN

UNKNOWN_SKILL = json.dumps(
    {
        "id": "task",
        "contextId": "context",
        "status": {
            "state": "TASK_STATE_FAILED",
            "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "unknown skill: base"}]},
        },
    }
).encode()
"""What an agent answers that has retired the skill: evidence, whether true or not."""


class Traffic:
    """Random calls. `calls` counts them by method and status; `complaints` are what no fault excuses."""

    def __init__(self, channel: grpc.aio.Channel, agents: Sequence[str], chance: random.Random) -> None:
        self._discovery: Any = DiscoveryServiceStub(channel)
        self._fleet: Any = FleetServiceStub(channel)
        self._agents = agents
        self._chance = chance
        self.calls: Counter[str] = Counter()
        self.complaints: list[str] = []

    async def register_all(self) -> None:
        """Register every agent under the id that the watchers know."""
        for number, url in enumerate(self._agents):
            await self._call("RegisterAgent", self._fleet.RegisterAgent, _registration(number, url))

    async def run(self) -> None:
        """Call for ever."""
        while True:
            await asyncio.sleep(self._chance.random() * 0.05)
            number = self._chance.randrange(len(self._agents))
            url = self._agents[number]
            ref = agent_ref_pb2.AgentRef(agent_url=url)
            act = self._chance.random()
            if act < 0.1:
                await self._call("UnregisterAgent", self._fleet.UnregisterAgent, UnregisterAgentRequest(agent=ref))
            elif act < 0.3:
                await self._call("RegisterAgent", self._fleet.RegisterAgent, _registration(number, url))
            elif act < 0.4:
                await self._call("RefreshAgent", self._fleet.RefreshAgent, RefreshAgentRequest(agent=ref))
            else:
                await self._resolve_and_report(ref)

    async def _resolve_and_report(self, ref: agent_ref_pb2.AgentRef) -> None:
        request = ResolveSkillRequest(agent=ref, need=resolution_pb2.SkillNeed(skill_id="base"))
        answer = await self._call("ResolveSkill", self._discovery.ResolveSkill, request)
        if answer is None or self._chance.random() < 0.5:
            return
        found = answer.resolution
        report = ReportTaskOutcomeRequest(
            negotiated=observation_pb2.Negotiated(
                agent=found.agent, skill_id="base", skill_fingerprint=found.skill_fingerprint
            ),
            document=observation_pb2.Document(json=UNKNOWN_SKILL),
        )
        await self._call("ReportTaskOutcome", self._discovery.ReportTaskOutcome, report)

    async def _call(self, name: str, method: Callable[..., Awaitable[Any]], request: Any) -> Any:
        try:
            answer = await method(request, timeout=5.0)
        except grpc.aio.AioRpcError as error:
            self.calls[f"{name} {error.code().name}"] += 1
            if error.code() in FORBIDDEN:
                self.complaints.append(f"{name} ended with {error.code()}: {error.details()}")
            return None
        self.calls[f"{name} OK"] += 1
        return answer


def _registration(number: int, url: str) -> RegisterAgentRequest:
    return RegisterAgentRequest(agent_url=url, agent_id=f"agent-{number}")
