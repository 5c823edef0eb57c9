"""`cardkeeper agents | register | unregister | refresh | card | history | drift`: the operator's commands."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cardkeeper.cli.connection import (
    DEFAULT_SERVER,
    AsJson,
    CaFile,
    Server,
    Timeout,
    Token,
    agent_ref,
    authorization,
    connected,
    print_json,
    to_dict,
)
from cardkeeper.v1 import agent_pb2, change_pb2, fleet_service_pb2, fleet_service_pb2_grpc, verdict_pb2

app = typer.Typer()

Agent = Annotated[str, typer.Argument(help="URL, agents/ID, or ID.")]


@app.command()
def agents(
    server: Server = DEFAULT_SERVER, tls_ca: CaFile = "", timeout: Timeout = 15.0, as_json: AsJson = False
) -> None:
    """List the agents whose cards are kept."""
    found: list[agent_pb2.Agent] = []
    with connected(server, tls_ca) as channel:
        stub = fleet_service_pb2_grpc.FleetServiceStub(channel)
        request = fleet_service_pb2.ListAgentsRequest(page_size=1000)
        while True:
            page = stub.ListAgents(request, timeout=timeout)
            found.extend(page.agents)
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
    if as_json:
        print_json([to_dict(agent) for agent in found])
        return
    table = Table("agent", "url", "card", "dialect", "version", "skills", "changes", "silent", box=None)
    for agent in found:
        table.add_row(
            agent.name.removeprefix("agents/"),
            agent.agent_url,
            _state(agent),
            agent.dialect,
            agent.card_version,
            str(len(agent.skill_ids)),
            str(agent.change_count),
            str(agent.silent_change_count),
        )
    Console().print(table if found else "no agents are kept yet: resolve a skill, or register one")


@app.command()
def register(
    agent_url: Annotated[str, typer.Argument(help="Base URL of the agent.")],
    agent_id: Annotated[str, typer.Option("--id", help="Wanted id; empty: derived from the URL.")] = "",
    server: Server = DEFAULT_SERVER,
    tls_ca: CaFile = "",
    token: Token = "",
    timeout: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """Keep an agent's card from now on."""
    with connected(server, tls_ca) as channel:
        stub = fleet_service_pb2_grpc.FleetServiceStub(channel)
        request = fleet_service_pb2.RegisterAgentRequest(agent_url=agent_url, agent_id=agent_id)
        agent = stub.RegisterAgent(request, timeout=timeout, metadata=authorization(token)).agent
    if as_json:
        print_json(to_dict(agent))
    else:
        trouble = f": {agent.last_error}" if agent.last_error else ""
        print(f"{agent.name}  {agent.agent_url}  {_state(agent)}{trouble}")


@app.command()
def unregister(
    agent: Agent, server: Server = DEFAULT_SERVER, tls_ca: CaFile = "", token: Token = "", timeout: Timeout = 15.0
) -> None:
    """Stop keeping an agent; every subscriber is told."""
    with connected(server, tls_ca) as channel:
        stub = fleet_service_pb2_grpc.FleetServiceStub(channel)
        request = fleet_service_pb2.UnregisterAgentRequest(agent=agent_ref(agent))
        answer = stub.UnregisterAgent(request, timeout=timeout, metadata=authorization(token))
    print(f"removed at revision {answer.revision.sequence}")


@app.command()
def refresh(
    agent: Agent,
    server: Server = DEFAULT_SERVER,
    tls_ca: CaFile = "",
    token: Token = "",
    timeout: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """Fetch a card now, as a deploy hook would, and print what changed."""
    with connected(server, tls_ca) as channel:
        stub = fleet_service_pb2_grpc.FleetServiceStub(channel)
        request = fleet_service_pb2.RefreshAgentRequest(agent=agent_ref(agent))
        answer = stub.RefreshAgent(request, timeout=timeout, metadata=authorization(token))
    if as_json:
        print_json(to_dict(answer))
    elif answer.changes.changes:
        _print_changes(answer.changes)
    else:
        print("unchanged")


@app.command()
def card(
    agent: Agent,
    digest: Annotated[str, typer.Option(help="Skill fingerprint or card digest of an earlier card.")] = "",
    raw: Annotated[bool, typer.Option("--raw", help="Print the document byte for byte.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the document to a file.")] = None,
    server: Server = DEFAULT_SERVER,
    tls_ca: CaFile = "",
    timeout: Timeout = 15.0,
    as_json: AsJson = False,
) -> None:
    """Show a card that is kept: its digests and findings, or the document itself."""
    with connected(server, tls_ca) as channel:
        stub = fleet_service_pb2_grpc.FleetServiceStub(channel)
        request = fleet_service_pb2.GetCardRequest(agent=agent_ref(agent), digest=digest)
        found = stub.GetCard(request, timeout=timeout).card
    if output is not None:
        output.write_bytes(found.body)
    elif raw:
        sys.stdout.buffer.write(found.body)
    elif as_json:
        print_json(to_dict(found))
    else:
        _print_card(found)


@app.command()
def history(
    agent: Agent, server: Server = DEFAULT_SERVER, tls_ca: CaFile = "", timeout: Timeout = 15.0, as_json: AsJson = False
) -> None:
    """List the cards that an agent has had, newest first."""
    with connected(server, tls_ca) as channel:
        stub = fleet_service_pb2_grpc.FleetServiceStub(channel)
        request = fleet_service_pb2.ListCardsRequest(agent=agent_ref(agent), page_size=100)
        cards = stub.ListCards(request, timeout=timeout).cards
    if as_json:
        print_json([to_dict(item) for item in cards])
        return
    table = Table("revision", "fetched", "cause", "version", "skill fingerprint", box=None)
    for item in cards:
        cause = change_pb2.Cause.Name(item.cause).removeprefix("CAUSE_").lower()
        fetched = item.fetch_time.ToJsonString()
        table.add_row(str(item.revision.sequence), fetched, cause, item.version, item.skill_fingerprint)
    Console().print(table)


@app.command()
def drift(
    agent: Annotated[str, typer.Argument(help="URL, agents/ID, or ID; empty: all.")] = "",
    server: Server = DEFAULT_SERVER,
    tls_ca: CaFile = "",
    timeout: Timeout = 15.0,
    as_json: AsJson = False,
) -> None:
    """List what was confirmed, contradicted or left open, newest first."""
    with connected(server, tls_ca) as channel:
        stub = fleet_service_pb2_grpc.FleetServiceStub(channel)
        request = fleet_service_pb2.ListDriftEventsRequest(agent=agent_ref(agent) if agent else None, page_size=100)
        events = stub.ListDriftEvents(request, timeout=timeout).drift_events
    if as_json:
        print_json([to_dict(item) for item in events])
        return
    table = Table("time", "agent", "verdict", "silent", "skill", "evidence", box=None)
    for item in events:
        kinds = {verdict_pb2.EvidenceKind.Name(piece.kind).removeprefix("EVIDENCE_KIND_") for piece in item.evidence}
        table.add_row(
            item.event_time.ToJsonString(),
            item.agent.removeprefix("agents/"),
            verdict_pb2.Verdict.Name(item.verdict).removeprefix("VERDICT_"),
            "yes" if item.changes.silent else "",
            item.skill_id,
            ", ".join(sorted(kinds)),
        )
    Console().print(table if events else "nothing has drifted")


def _state(agent: agent_pb2.Agent) -> str:
    return agent_pb2.CardState.Name(agent.card_state).removeprefix("CARD_STATE_").lower()


def _print_card(found: agent_pb2.Card) -> None:
    table = Table(show_header=False, box=None)
    for key, value in (
        ("agent", found.agent),
        ("fetched", f"{found.fetch_time.ToJsonString()} from {found.card_url}"),
        ("dialect", found.dialect),
        ("version", found.version or "none"),
        ("fingerprint", found.skill_fingerprint),
        ("digest", found.card_digest),
        ("size", f"{len(found.body)} bytes (--raw prints it)"),
    ):
        table.add_row(key, value)
    Console(soft_wrap=True).print(table)
    for finding in found.findings:
        level = agent_pb2.Finding.Level.Name(finding.level).removeprefix("LEVEL_").lower()
        print(f"  {level:8} {finding.id} at {finding.pointer or '/'}: {finding.message}")


def _print_changes(changes: change_pb2.ChangeSet) -> None:
    for change in changes.changes:
        kind = change_pb2.ChangeKind.Name(change.kind).removeprefix("CHANGE_KIND_").lower()
        severity = change_pb2.Severity.Name(change.severity).removeprefix("SEVERITY_").lower()
        print(f"{severity:10} {kind} {change.skill_id}  {change.before or '-'} -> {change.after or '-'}")
    if changes.silent:
        print("silent: the version text did not move")
