"""The requests of both clients, from what their callers say. Pure."""

from collections.abc import Sequence

from cardkeeper_client.need import Need
from cardkeeper_client.observed import Answer, document_of
from cardkeeper_client.resolution import Resolution
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import observation_pb2


def find_request(query: str, need: Need, tags: Sequence[str], limit: int) -> pb.FindSkillsRequest:
    """The search for skills; the agent of the need is not looked at."""
    return pb.FindSkillsRequest(query=query, tags=tags, need=need.skill_need(), page_size=limit)


def report_request(
    resolution: Resolution,
    outcome: Answer,
    *,
    need: Need | None = None,
    http_status: int | None = None,
    call: observation_pb2.TaskCall | None = None,
) -> pb.ReportTaskOutcomeRequest:
    """The report of an outcome. `call` says more exactly than `need` how the task was asked for.

    Raises TypeError or ValueError where the outcome is nothing that can be reported.
    """
    request = pb.ReportTaskOutcomeRequest(negotiated=resolution.negotiated())
    if isinstance(outcome, observation_pb2.TaskOutcomeSummary):
        request.summary.CopyFrom(outcome)
    else:
        request.document.CopyFrom(document_of(outcome, http_status=http_status))
    request.call.protocol_version = resolution.protocol_version
    if need is not None:
        request.call.MergeFrom(need.task_call())
    if call is not None:
        request.call.MergeFrom(call)
    return request


def validate_request(
    resolution: Resolution,
    artifact: Answer,
    policy: "pb.ArtifactPolicy.ValueType" = pb.ARTIFACT_POLICY_UNSPECIFIED,
) -> pb.ValidateArtifactRequest:
    """The question whether an artifact may go on. Raises TypeError or ValueError where it is nothing that can be judged."""
    request = pb.ValidateArtifactRequest(negotiated=resolution.negotiated(), policy=policy)
    if isinstance(artifact, observation_pb2.ArtifactSummary):
        request.summary.CopyFrom(artifact)
    else:
        request.artifact.CopyFrom(document_of(artifact))
    return request
