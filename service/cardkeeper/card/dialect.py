"""Which A2A generation a document is written in, or what else it is (a2a-facts 2.7). Pure.

Shape decides, not what `protocolVersion` claims: cards say 1.0 and are written in 0.3, and the other way round.
"""

from collections.abc import Mapping

from cardkeeper.card.members import member
from cardkeeper.card.model import Dialect


def detect(document: Mapping[str, object]) -> Dialect:
    """Return the generation whose members the document uses."""
    modern = isinstance(member(document, "supportedInterfaces"), list)
    legacy = any(
        member(document, key) is not None
        for key in ("url", "preferredTransport", "additionalInterfaces", "authentication")
    )
    if modern:
        return Dialect.HYBRID if legacy else Dialect.V1_0
    if _is_0_3(document):
        return Dialect.V0_3
    authentication = document.get("authentication")
    if isinstance(authentication, Mapping) and "schemes" in authentication and not member(document, "securitySchemes"):
        return Dialect.V0_1
    if member(document, "url") is not None:
        return Dialect.V0_2
    return Dialect.UNKNOWN


def _is_0_3(document: Mapping[str, object]) -> bool:
    if any(member(document, key) is not None for key in ("additionalInterfaces", "preferredTransport", "signatures")):
        return True
    claimed = member(document, "protocolVersion")
    if not isinstance(claimed, str):
        return False
    major, _, rest = claimed.strip().lstrip("v").partition(".")
    return (major, rest.partition(".")[0]) >= ("0", "3") if major.isdigit() else False


_OWN_MEMBERS = (
    "supportedInterfaces",
    "additionalInterfaces",
    "defaultInputModes",
    "defaultOutputModes",
    "protocolVersion",
)
_OWN_CAPABILITIES = ("streaming", "pushNotifications", "stateTransitionHistory", "extendedAgentCard", "extensions")


def speaks_a2a(document: Mapping[str, object]) -> bool:
    """Whether a document has members that only A2A gives a meaning to: not just a name, a version and some skills."""
    if any(member(document, key) is not None for key in _OWN_MEMBERS):
        return True
    capabilities = document.get("capabilities")
    if isinstance(capabilities, Mapping) and any(member(capabilities, key) is not None for key in _OWN_CAPABILITIES):
        return True
    skills = document.get("skills")
    return isinstance(skills, list) and any(isinstance(item, Mapping) and _is_a2a_skill(item) for item in skills)


def _is_a2a_skill(skill: Mapping[str, object]) -> bool:
    modes = member(skill, "inputModes"), member(skill, "outputModes")
    return "id" in skill and ("tags" in skill or any(mode is not None for mode in modes))


_FOREIGN: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"mcpServers"}), "an MCP client configuration"),
    (frozenset({"serverInfo"}), "an MCP server description"),
    (frozenset({"tools", "protocol"}), "an MCP server description"),
    (frozenset({"openapi"}), "an OpenAPI description"),
    (frozenset({"swagger"}), "an OpenAPI description"),
    (frozenset({"linkset"}), "an API catalog (RFC 9727)"),
    (frozenset({"entries", "specVersion"}), "an AI catalog"),
    (frozenset({"registrations"}), "an ERC-8004 registration"),
    (frozenset({"agent_name", "endpoints"}), "an AgentFacts document"),
    (frozenset({"jsonrpc"}), "a JSON-RPC message"),
    (frozenset({"error"}), "an error message"),
    (frozenset({"@context"}), "a JSON-LD document"),
    (frozenset({"schema_version", "name_for_model"}), "a ChatGPT plugin manifest"),
    (frozenset({"start_url"}), "a web app manifest"),
    (frozenset({"dependencies"}), "a package description"),
)
_WRAPPERS = ("agent", "agentCard", "agent_card", "card", "data", "result")


def what_else(document: Mapping[str, object]) -> str:
    """Say what a document that is no A2A card looks like; empty where that is not known."""
    for wrapper in _WRAPPERS:
        inner = document.get(wrapper)
        if isinstance(inner, Mapping) and any(key in inner for key in ("skills", "url", "supportedInterfaces")):
            return f'a card inside "{wrapper}": serve what is inside it'
    for keys, name in _FOREIGN:
        if keys <= document.keys():
            return name
    return ""
