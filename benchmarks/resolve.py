"""ResolveSkill, answered from memory, against a handler that returns ready bytes."""

import re
import statistics
import struct
import subprocess
import tempfile

import grpc
from processes import CardSource, bare_server, card, cardkeeper_server

from cardkeeper.v1 import agent_ref_pb2, discovery_service_pb2_grpc, resolution_pb2
from cardkeeper.v1 import discovery_service_pb2 as pb

ROUNDS = 7
SECONDS = 4
PATH = "/cardkeeper.v1.DiscoveryService/ResolveSkill"


def measure() -> dict[str, float]:
    """Return throughputs in calls a second, and their ratio: the median over rounds that alternate."""
    source = CardSource(card(5))
    try:
        with cardkeeper_server() as port:
            request = pb.ResolveSkillRequest(
                agent=agent_ref_pb2.AgentRef(agent_url=source.url), need=resolution_pb2.SkillNeed(skill_id="skill-1")
            )
            answer = _checked_answer(port, request)
            with bare_server("unary", str(len(answer))) as (floor_port, _):
                ours, floor = [], []
                for _ in range(ROUNDS):
                    floor.append(_load(floor_port, request.SerializeToString()))
                    ours.append(_load(port, request.SerializeToString()))
            # h2load takes a gRPC error for a success: the answer must still be the one that was checked.
            if _checked_answer(port, request) != answer:
                raise RuntimeError("the answer changed during the run")
    finally:
        source.close()
    ratios = [mine / bare for mine, bare in zip(ours, floor, strict=True)]
    return {
        "resolve_calls_per_second": statistics.median(ours),
        "resolve_floor_calls_per_second": statistics.median(floor),
        "resolve_throughput_ratio": statistics.median(ratios),
    }


def _checked_answer(port: int, request: pb.ResolveSkillRequest) -> bytes:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        response = discovery_service_pb2_grpc.DiscoveryServiceStub(channel).ResolveSkill(request, timeout=10)
    if response.resolution.skill_id != request.need.skill_id:
        raise RuntimeError("the service resolved something else")
    return response.SerializeToString()


def _load(port: int, message: bytes) -> float:
    """Calls a second that h2load gets through on 4 connections with 16 streams each."""
    with tempfile.NamedTemporaryFile() as body:
        body.write(b"\0" + struct.pack(">I", len(message)) + message)
        body.flush()
        command = [
            "h2load", f"--duration={SECONDS}", "--warm-up-time=1", "-c", "4", "-m", "16", "-t", "1", "-d", body.name,
            "-H", "content-type: application/grpc", "-H", "te: trailers", f"http://127.0.0.1:{port}{PATH}",
        ]  # fmt: skip
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"([\d.]+) req/s", printed)
    if found is None or " 0 failed" not in printed:
        raise RuntimeError(printed)
    return float(found.group(1))
