"""`cardkeeper resolve | find | report | validate | watch`: what a client of the service does, by hand."""

import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated

import grpc
import typer
from google.protobuf.duration_pb2 import Duration
from rich.console import Console
from rich.table import Table

from cardkeeper.cli.connection import (
    DEFAULT_SERVER,
    REFUSED,
    USAGE,
    AsJson,
    CaFile,
    Server,
    Timeout,
    agent_ref,
    connected,
    print_json,
    stop,
    to_dict,
)
from cardkeeper.v1 import (
    change_pb2,
    discovery_service_pb2,
    discovery_service_pb2_grpc,
    fleet_service_pb2,
    fleet_service_pb2_grpc,
    invalidation_pb2,
    observation_pb2,
    resolution_pb2,
    revision_pb2,
    verdict_pb2,
)

app = typer.Typer()

Agent = Annotated[str, typer.Argument(help="URL, agents/ID, or ID.")]
Skill = Annotated[str, typer.Argument(help="Skill id, as the card writes it.")]
Modes = Annotated[list[str] | None, typer.Option(help="Media type; repeatable.")]
Fingerprint = Annotated[str, typer.Option(help="Skill fingerprint that was negotiated; empty: resolve now.")]


@app.command()
def resolve(
    agent: Agent,
    skill: Skill,
    input_mode: Modes = None,
    output_mode: Modes = None,
    streaming: Annotated[bool, typer.Option("--streaming", help="The agent must stream.")] = False,
    push: Annotated[bool, typer.Option("--push", help="The agent must send push notifications.")] = False,
    refetch: Annotated[bool, typer.Option("--refetch", help="Fetch the card before answering.")] = False,
    max_age: Annotated[float | None, typer.Option(help="Oldest verification accepted, in seconds.")] = None,
    server: Server = DEFAULT_SERVER,
    tls_ca: CaFile = "",
    timeout: Timeout = 15.0,
    as_json: AsJson = False,
) -> None:
    """Negotiate a skill of an agent. Exit 1 where it is refused."""
    consistency = None
    if refetch:
        consistency = revision_pb2.Consistency(refetch=revision_pb2.Refetch())
    elif max_age is not None:
        span = Duration()
        span.FromMilliseconds(int(max_age * 1000))
        consistency = revision_pb2.Consistency(max_age=span)
    request = discovery_service_pb2.ResolveSkillRequest(
        agent=agent_ref(agent),
        need=resolution_pb2.SkillNeed(
            skill_id=skill,
            input_modes=input_mode or (),
            output_modes=output_mode or (),
            streaming=streaming,
            push_notifications=push,
        ),
        consistency=consistency,
    )
    with connected(server, tls_ca) as channel:
        stub = discovery_service_pb2_grpc.DiscoveryServiceStub(channel)
        resolution = stub.ResolveSkill(request, timeout=timeout).resolution
        if as_json:
            print_json(to_dict(resolution))
        else:
            _print_resolution(resolution)


@app.command()
def find(
    query: Annotated[str, typer.Argument(help="Words to look for; empty: all skills.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="The skill has this tag; repeatable.")] = None,
    output_mode: Modes = None,
    limit: Annotated[int, typer.Option(help="Hits to show, at most 100.")] = 20,
    server: Server = DEFAULT_SERVER,
    tls_ca: CaFile = "",
    timeout: Timeout = 15.0,
    as_json: AsJson = False,
) -> None:
    """Search the skills of all agents."""
    request = discovery_service_pb2.FindSkillsRequest(
        query=query,
        tags=tag or (),
        need=resolution_pb2.SkillNeed(output_modes=output_mode or ()),
        page_size=limit,
    )
    with connected(server, tls_ca) as channel:
        response = discovery_service_pb2_grpc.DiscoveryServiceStub(channel).FindSkills(request, timeout=timeout)
    if as_json:
        print_json(to_dict(response))
        return
    table = Table("skill", "agent", "name", "output", "why", box=None)
    for hit in response.matches:
        found = hit.resolution
        table.add_row(
            found.skill_id, found.agent, hit.skill_name, ", ".join(found.output_modes), ", ".join(hit.reasons)
        )
    Console().print(table if response.matches else "nothing found")


@app.command()
def report(
    agent: Agent,
    skill: Skill,
    outcome: Annotated[Path, typer.Argument(help="JSON that the agent answered with; - for standard input.")],
    fingerprint: Fingerprint = "",
    http_status: Annotated[int | None, typer.Option(help="HTTP status that came with it.")] = None,
    server: Server = DEFAULT_SERVER,
    tls_ca: CaFile = "",
    timeout: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """Report what came of a task, and print the verdict. Exit 1 unless nothing contradicts the card."""
    document = _document(outcome)
    if http_status is not None:
        document.http_status = http_status
    with connected(server, tls_ca) as channel:
        stub = discovery_service_pb2_grpc.DiscoveryServiceStub(channel)
        request = discovery_service_pb2.ReportTaskOutcomeRequest(
            negotiated=_negotiated(channel, agent, skill, fingerprint, timeout), document=document
        )
        judgement = stub.ReportTaskOutcome(request, timeout=timeout).judgement
    if as_json:
        print_json(to_dict(judgement))
    else:
        _print_judgement(judgement)
    if judgement.verdict != verdict_pb2.VERDICT_NO_DRIFT:
        raise typer.Exit(REFUSED)


@app.command()
def validate(
    agent: Agent,
    skill: Skill,
    artifact: Annotated[Path, typer.Argument(help="JSON of the artifact; - for standard input.")],
    fingerprint: Fingerprint = "",
    policy: Annotated[str, typer.Option(help="strict, confirm or lenient; empty: the service's own.")] = "",
    server: Server = DEFAULT_SERVER,
    tls_ca: CaFile = "",
    timeout: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """Judge an artifact before it goes anywhere. Exit 1 where it is rejected."""
    known = {"": 0, "strict": 1, "confirm": 2, "lenient": 3}
    if policy not in known:
        stop("--policy is strict, confirm or lenient", USAGE)
    with connected(server, tls_ca) as channel:
        stub = discovery_service_pb2_grpc.DiscoveryServiceStub(channel)
        request = discovery_service_pb2.ValidateArtifactRequest(
            negotiated=_negotiated(channel, agent, skill, fingerprint, timeout),
            artifact=_document(artifact),
            policy=discovery_service_pb2.ArtifactPolicy.ValueType(known[policy]),
        )
        response = stub.ValidateArtifact(request, timeout=timeout)
    if as_json:
        print_json(to_dict(response))
    else:
        print("accepted" if response.accepted else "REJECTED")
        results = discovery_service_pb2.ValidateArtifactResponse.Result
        for part in response.parts:
            name = results.Name(part.result).removeprefix("RESULT_").lower()
            print(f"  {part.pointer or '/'}  {part.media_type}  {name}")
            for violation in part.violations:
                print(f"    {violation.pointer or '/'}: {violation.message}")
        _print_judgement(response.judgement)
    if not response.accepted:
        raise typer.Exit(REFUSED)


@app.command()
def watch(
    agents: Annotated[list[str] | None, typer.Argument(help="URL, agents/ID, or ID; none: all.")] = None,
    min_severity: Annotated[str, typer.Option(help="cosmetic, compatible or breaking.")] = "cosmetic",
    server: Server = DEFAULT_SERVER,
    tls_ca: CaFile = "",
    as_json: AsJson = False,
) -> None:
    """Print what the service tells of changes, one line each, until Ctrl-C."""
    name = f"SEVERITY_{min_severity.upper()}"
    if name not in dict(change_pb2.Severity.items()):
        stop("--min-severity is cosmetic, compatible or breaking", USAGE)
    subscribe = invalidation_pb2.Subscribe(
        subscription_id=1,
        agents=[agent_ref(agent) for agent in agents or ()],
        min_severity=change_pb2.Severity.Value(name),
    )
    steps: SimpleQueue[discovery_service_pb2.WatchInvalidationsRequest] = SimpleQueue()
    steps.put(discovery_service_pb2.WatchInvalidationsRequest(subscribe=subscribe))
    with connected(server, tls_ca) as channel:
        call = discovery_service_pb2_grpc.DiscoveryServiceStub(channel).WatchInvalidations(iter(steps.get, None))
        try:
            for frame in call:
                if as_json:
                    print_json(to_dict(frame))
                else:
                    _print_frame(frame)
                sys.stdout.flush()
        except KeyboardInterrupt:
            pass
        finally:
            call.cancel()


def _negotiated(
    channel: grpc.Channel, agent: str, skill: str, fingerprint: str, timeout: float
) -> observation_pb2.Negotiated:
    """What was negotiated, although the card may have changed since; without a fingerprint, what would be now."""
    ref = agent_ref(agent)
    if fingerprint:
        asked = fleet_service_pb2.GetAgentRequest(agent=ref)
        name = ref.name or fleet_service_pb2_grpc.FleetServiceStub(channel).GetAgent(asked, timeout=timeout).agent.name
        return observation_pb2.Negotiated(agent=name, skill_id=skill, skill_fingerprint=fingerprint)
    request = discovery_service_pb2.ResolveSkillRequest(agent=ref, need=resolution_pb2.SkillNeed(skill_id=skill))
    stub = discovery_service_pb2_grpc.DiscoveryServiceStub(channel)
    resolution = stub.ResolveSkill(request, timeout=timeout).resolution
    return observation_pb2.Negotiated(
        agent=resolution.agent, skill_id=skill, skill_fingerprint=resolution.skill_fingerprint
    )


def _document(path: Path) -> observation_pb2.Document:
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        stop(f"cannot read {path}: {error.strerror}", USAGE)
    return observation_pb2.Document(json=content)


def _print_resolution(resolution: resolution_pb2.Resolution) -> None:
    table = Table(show_header=False, box=None)
    freshness = resolution_pb2.Freshness.Name(resolution.freshness).removeprefix("FRESHNESS_").lower()
    for key, value in (
        ("agent", f"{resolution.agent}  {resolution.agent_url}"),
        ("skill", resolution.skill_id),
        ("call", f"{resolution.endpoint_url}  {resolution.protocol_binding} {resolution.protocol_version}"),
        ("input", ", ".join(resolution.input_modes) or "not declared"),
        ("output", ", ".join(resolution.output_modes) or "not declared"),
        ("streaming", "yes" if resolution.streaming else "no"),
        ("push", "yes" if resolution.push_notifications else "no"),
        ("version", resolution.card_version or "none"),
        ("fingerprint", resolution.skill_fingerprint),
        ("revision", str(resolution.revision.sequence)),
        ("freshness", f"{freshness}, verified {resolution.verify_time.ToJsonString()}"),
    ):
        table.add_row(key, value)
    Console(soft_wrap=True).print(table)


def _print_judgement(judgement: verdict_pb2.Judgement) -> None:
    verdict = verdict_pb2.Verdict.Name(judgement.verdict).removeprefix("VERDICT_")
    advice = verdict_pb2.Advice.Name(judgement.advice).removeprefix("ADVICE_")
    print(f"{verdict}, advice {advice}: {judgement.message}")
    for item in judgement.evidence:
        kind = verdict_pb2.EvidenceKind.Name(item.kind).removeprefix("EVIDENCE_KIND_")
        print(f"  {kind} at {item.pointer or '/'} ({item.rule}): expected {item.expected}; observed {item.observed}")
    for change in judgement.changes.changes:
        kind = change_pb2.ChangeKind.Name(change.kind).removeprefix("CHANGE_KIND_").lower()
        print(f"  {kind} {change.skill_id}: {change.before or '-'} -> {change.after or '-'}")
    if judgement.near_skill_ids:
        print(f"  near: {', '.join(judgement.near_skill_ids)}")
    for other in judgement.alternatives:
        print(f"  also served by {other.agent} {other.agent_url}")


def _print_frame(frame: discovery_service_pb2.WatchInvalidationsResponse) -> None:
    head = f"{frame.revision.sequence:>8}"
    match frame.WhichOneof("event"):
        case "invalidation":
            told = frame.invalidation
            severity = change_pb2.Severity.Name(told.changes.severity).removeprefix("SEVERITY_").lower()
            cause = change_pb2.Cause.Name(told.cause).removeprefix("CAUSE_").lower()
            what = "removed" if told.removed else severity
            silent = ", silent (version unmoved)" if told.changes.silent else ""
            print(f"{head}  {told.agent}  {what}, by {cause}{silent}  {', '.join(told.skill_ids)}")
        case "synced":
            print(f"{head}  in sync, {frame.synced.agent_count} agents")
        case "resync":
            reason = invalidation_pb2.Resync.Reason.Name(frame.resync.reason).removeprefix("REASON_").lower()
            print(f"{head}  history has a gap: {reason}")
        case "revalidate":
            told_agents = ", ".join(frame.revalidate.agents) or "all agents"
            print(f"{head}  {told_agents}  cannot be vouched for: {frame.revalidate.reason}")
        case "draining":
            print(f"{head}  the service is shutting down")
