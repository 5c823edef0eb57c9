"""Messages of the contract to values of the fleet. Rules are checked before; what they cannot say is checked here."""

from google.protobuf.duration_pb2 import Duration

from cardkeeper.drift.artifact import read_artifact
from cardkeeper.drift.model import ArtifactPolicy, Binding, Call, Part, PartKind
from cardkeeper.drift.outcome import Observation, observation_from_summary, read_outcome
from cardkeeper.drift.wire import proto_to_json
from cardkeeper.errors import InvalidInput
from cardkeeper.fetch.address import canonical_agent_url
from cardkeeper.fleet.consistency import Consistency
from cardkeeper.fleet.judge import Negotiated
from cardkeeper.fleet.keeper import AgentRef
from cardkeeper.fleet.negotiation import Need
from cardkeeper.fleet.revision_log import Revision
from cardkeeper.v1 import (
    agent_ref_pb2,
    discovery_service_pb2,
    observation_pb2,
    resolution_pb2,
    revision_pb2,
)

_PART_KINDS = {
    observation_pb2.ArtifactSummary.KIND_TEXT: PartKind.TEXT,
    observation_pb2.ArtifactSummary.KIND_DATA: PartKind.DATA,
}
_POLICIES = {
    discovery_service_pb2.ARTIFACT_POLICY_UNSPECIFIED: None,
    discovery_service_pb2.ARTIFACT_POLICY_STRICT: ArtifactPolicy.STRICT,
    discovery_service_pb2.ARTIFACT_POLICY_CONFIRM: ArtifactPolicy.CONFIRM,
    discovery_service_pb2.ARTIFACT_POLICY_LENIENT: ArtifactPolicy.LENIENT,
}


def agent_id(name: str) -> str:
    """The id in a resource name."""
    return name.removeprefix("agents/")


def agent_ref(message: agent_ref_pb2.AgentRef) -> AgentRef:
    """A reference. Raises InvalidInput for a URL that is none."""
    if message.name:
        return AgentRef(id=agent_id(message.name))
    return AgentRef(url=canonical_agent_url(message.agent_url))


def need(message: resolution_pb2.SkillNeed) -> Need:
    """A need."""
    return Need(
        skill_id=message.skill_id,
        input_modes=tuple(message.input_modes),
        output_modes=tuple(message.output_modes),
        streaming=message.streaming,
        push_notifications=message.push_notifications,
    )


def revision(message: revision_pb2.Revision) -> Revision:
    """A revision."""
    return Revision(message.epoch, message.sequence)


def seconds(message: Duration, field: str) -> float:
    """A duration. Raises InvalidInput for a negative one, or one that protobuf does not allow."""
    value = message.seconds + message.nanos / 1e9
    if not 0.0 <= value <= 315_576_000_000.0:
        raise InvalidInput("a duration of 0 or more seconds is needed", field=field)
    return value


def consistency(message: revision_pb2.Consistency) -> Consistency:
    """How fresh an answer must be."""
    match message.WhichOneof("requirement"):
        case "max_age":
            return Consistency(max_age=seconds(message.max_age, "consistency.max_age"))
        case "at_least_as_fresh":
            return Consistency(at_least=revision(message.at_least_as_fresh))
        case "refetch":
            return Consistency(refetch=True)
        case _:
            return Consistency()


def negotiated(message: observation_pb2.Negotiated) -> Negotiated:
    """What an observation is tied to."""
    return Negotiated(
        agent_id=agent_id(message.agent),
        skill_id=message.skill_id,
        skill_fingerprint=message.skill_fingerprint,
    )


def call(message: observation_pb2.TaskCall, skill_id: str) -> Call:
    """How the task was asked for."""
    return Call(
        skill_id=skill_id,
        method=message.method,
        input_modes=tuple(message.input_modes),
        accepted_output_modes=tuple(message.accepted_output_modes),
        streaming=message.streaming,
        push_notifications=message.push_notifications,
        protocol_version=message.protocol_version,
        extensions=tuple(message.extensions),
    )


def outcome(request: discovery_service_pb2.ReportTaskOutcomeRequest) -> Observation:
    """What was observed. Raises DocumentUnreadable."""
    if request.HasField("summary"):
        summary = request.summary
        return observation_from_summary(
            task_state=summary.task_state,
            jsonrpc_code=summary.jsonrpc_code if summary.HasField("jsonrpc_code") else None,
            grpc_code=summary.grpc_code if summary.HasField("grpc_code") else None,
            http_status=summary.http_status if summary.HasField("http_status") else None,
            error_reason=summary.error_reason,
            artifact_media_types=tuple(summary.artifact_media_types),
            matched_patterns=tuple(summary.matched_patterns),
        )
    document = request.document
    http_status = document.http_status if document.HasField("http_status") else None
    grpc_code = document.grpc_code if document.HasField("grpc_code") else None
    binding = Binding.UNKNOWN
    if http_status is not None:
        binding = Binding.HTTP_JSON
    elif grpc_code is not None or document.HasField("proto"):
        binding = Binding.GRPC
    return read_outcome(body(document), binding=binding, http_status=http_status, grpc_code=grpc_code)


def parts(request: discovery_service_pb2.ValidateArtifactRequest) -> tuple[Part, ...]:
    """The parts of an artifact. Raises DocumentUnreadable."""
    if request.HasField("artifact"):
        return read_artifact(body(request.artifact))
    return tuple(
        Part(
            kind=_PART_KINDS.get(part.kind, PartKind.FILE),
            pointer=f"/parts/{index}",
            media_type=part.media_type,
            file_name=part.file_name,
        )
        for index, part in enumerate(request.summary.parts)
    )


def policy(request: discovery_service_pb2.ValidateArtifactRequest) -> ArtifactPolicy | None:
    """The policy that the caller wants; None: the server's. An unknown value counts as CONFIRM, as the contract says."""
    return _POLICIES.get(request.policy, ArtifactPolicy.CONFIRM)


def body(document: observation_pb2.Document) -> bytes:
    """The document as JSON. Raises DocumentUnreadable for protobuf bytes that are not what proto_type says."""
    return document.json if document.HasField("json") else proto_to_json(document.proto, document.proto_type)
