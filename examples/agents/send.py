"""Sending a task to an A2A agent over JSON-RPC, in either generation; no SDK needed."""

import uuid
from typing import Any

import httpx


def task_request(text: str, skill_id: str, protocol_version: str) -> dict[str, Any]:
    """Return the JSON-RPC request that asks for a skill, named in the message's metadata as many agents expect it."""
    message_id = uuid.uuid4().hex
    if protocol_version.startswith("1."):
        message: dict[str, Any] = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
        method = "SendMessage"
    else:
        message = {
            "kind": "message",
            "messageId": message_id,
            "role": "user",
            "parts": [{"kind": "text", "text": text}],
        }
        method = "message/send"
    message["metadata"] = {"skillId": skill_id}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}


def send_task(endpoint_url: str, skill_id: str, *, protocol_version: str = "1.0", text: str = "a long text") -> bytes:
    """Send a task and return the response as it came."""
    response = httpx.post(
        endpoint_url,
        json=task_request(text, skill_id, protocol_version),
        headers={"A2A-Version": protocol_version},
        timeout=10.0,
    )
    return response.raise_for_status().content
