"""Requests of the contract, in few words."""

import json
from typing import Any

from cardkeeper.v1 import agent_ref_pb2, invalidation_pb2, observation_pb2, resolution_pb2
from cardkeeper.v1 import discovery_service_pb2 as pb


def ref(agent: str) -> agent_ref_pb2.AgentRef:
    """An agent by URL or by name."""
    if agent.startswith("agents/"):
        return agent_ref_pb2.AgentRef(name=agent)
    return agent_ref_pb2.AgentRef(agent_url=agent)


def resolve(agent: str, skill: str, **need: Any) -> pb.ResolveSkillRequest:
    """Resolve a skill of an agent."""
    return pb.ResolveSkillRequest(agent=ref(agent), need=resolution_pb2.SkillNeed(skill_id=skill, **need))


def negotiated(resolution: resolution_pb2.Resolution) -> observation_pb2.Negotiated:
    """What was resolved."""
    return observation_pb2.Negotiated(
        agent=resolution.agent, skill_id=resolution.skill_id, skill_fingerprint=resolution.skill_fingerprint
    )


def report(resolution: resolution_pb2.Resolution, outcome: object, **fields: Any) -> pb.ReportTaskOutcomeRequest:
    """Report a JSON outcome."""
    document = observation_pb2.Document(json=json.dumps(outcome).encode())
    return pb.ReportTaskOutcomeRequest(negotiated=negotiated(resolution), document=document, **fields)


def validate(resolution: resolution_pb2.Resolution, artifact: object, **fields: Any) -> pb.ValidateArtifactRequest:
    """Validate a JSON artifact."""
    document = observation_pb2.Document(json=json.dumps(artifact).encode())
    return pb.ValidateArtifactRequest(negotiated=negotiated(resolution), artifact=document, **fields)


def subscribe(*agents: str, id: int = 1, **fields: Any) -> pb.WatchInvalidationsRequest:  # noqa: A002 - the field's name
    """Subscribe to agents; none: all."""
    return pb.WatchInvalidationsRequest(
        subscribe=invalidation_pb2.Subscribe(subscription_id=id, agents=[ref(agent) for agent in agents], **fields)
    )


def failed_task(text: str) -> dict[str, Any]:
    """A JSON-RPC response with a failed task that says why (0.3 spelling)."""
    message = {"kind": "message", "role": "agent", "messageId": "m", "parts": [{"kind": "text", "text": text}]}
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "failed", "message": message}}
    return {"jsonrpc": "2.0", "id": 1, "result": task}


def text_artifact(media_type: str = "") -> dict[str, Any]:
    """A 1.0 artifact with one text part, of a stated type or of none."""
    part = {"text": "# words"} | ({"mediaType": media_type} if media_type else {})
    return {"artifactId": "a", "parts": [part]}
