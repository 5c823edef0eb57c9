"""Outcomes told without content, for clients that must not ship payloads."""

from collections.abc import Sequence

from cardkeeper.drift.model import Binding, Part, PartKind
from cardkeeper.drift.observation import Fault, Observation
from cardkeeper.drift.state import REFUSING, read_state


def observation_from_summary(
    *,
    task_state: str = "",
    jsonrpc_code: int | None = None,
    grpc_code: int | None = None,
    http_status: int | None = None,
    error_reason: str = "",
    artifact_media_types: Sequence[str] = (),
    matched_patterns: Sequence[str] = (),
    binding: Binding = Binding.UNKNOWN,
) -> Observation:
    """Return the observation that a content-free summary tells.

    An empty media type stands for a part that states none; such a part is taken for text, as nearly all are (a2a-facts
    11). `matched_patterns` are ids of text patterns that matched at the client. An HTTP status below 300 and the gRPC
    code 0 are no error.
    """
    state = read_state(task_state) if task_state else None
    failed_http = http_status if http_status is not None and http_status >= 300 else None
    failed_grpc = grpc_code or None
    faults: tuple[Fault, ...] = ()
    if error_reason or jsonrpc_code is not None or failed_grpc is not None or failed_http is not None:
        # Without content it stays open who answered: a bare 404 may come from anything on the way.
        said = bool(error_reason) or jsonrpc_code is not None
        faults = (
            Fault(
                pointer="",
                code=jsonrpc_code,
                http_status=failed_http,
                grpc_code=failed_grpc,
                reason=error_reason,
                a2a=said or failed_http is None,
            ),
        )
    parts = tuple(
        Part(kind=_kind(media_type), pointer=f"/artifact_media_types/{index}", media_type=media_type)
        for index, media_type in enumerate(artifact_media_types)
    )
    return Observation(
        binding=binding,
        state=state,
        faults=faults,
        parts=() if state in REFUSING else parts,
        matched_patterns=tuple(matched_patterns),
    )


def _kind(media_type: str) -> PartKind:
    return PartKind.TEXT if not media_type or media_type.lower().startswith("text") else PartKind.FILE
