"""From a document's bytes to a card, or a refusal with every reason. Pure.

Repaired is what can mean only one thing; the rest is used as it stands or ignored, with a finding (docs/cards.md).
"""

from collections.abc import Mapping, Sequence

from cardkeeper.card.canonical import digest
from cardkeeper.card.capability import read_extensions, read_output_schemas
from cardkeeper.card.dialect import detect, speaks_a2a, what_else
from cardkeeper.card.finding import Finding, Level
from cardkeeper.card.fingerprint import fingerprint_document
from cardkeeper.card.interface import read_interfaces
from cardkeeper.card.members import Members
from cardkeeper.card.model import Card, Dialect, Interface
from cardkeeper.card.read import JsonObject, read_document
from cardkeeper.card.remarks import Remarks, shown
from cardkeeper.card.skill import read_skills
from cardkeeper.errors import CardInvalid


def parse_card(body: bytes, card_url: str = "") -> Card:
    """Return the card in a document that was fetched from `card_url`. Raises CardInvalid."""
    document, findings = read_document(body)
    return normalise(document, card_url, findings)


def normalise(document: JsonObject, card_url: str = "", findings: Sequence[Finding] = ()) -> Card:
    """Return the card that a JSON object is; `findings` are those of its text. Raises CardInvalid."""
    remarks = Remarks(findings)
    root = Members(document, "", remarks)
    dialect = detect(document)
    _check_it_is_a_card(root, dialect)
    capabilities = root.child("capabilities")
    extended = root.flag("supportsAuthenticatedExtendedCard") or capabilities.flag("extendedAgentCard")
    interfaces = read_interfaces(root, dialect, card_url)
    for key in ("name", "version"):
        if not root.text(key):
            remarks.warn(f"{key}.missing", f"/{key}", f"the card has no {key}, which every A2A version requires")
    return Card(
        dialect=dialect,
        name=root.text("name"),
        description=root.text("description"),
        version=_version(root),
        interfaces=interfaces,
        skills=read_skills(root, read_output_schemas(capabilities)),
        streaming=capabilities.flag("streaming"),
        push_notifications=capabilities.flag("pushNotifications"),
        extended_card=extended,
        extensions=read_extensions(capabilities),
        skill_fingerprint=fingerprint_document(document),
        card_digest=digest(document),
        interface_digest=_interface_digest(interfaces),
        security_digest=_security_digest(root),
        signature_digest=_signature_digest(root),
        findings=remarks.findings(),
    )


def _check_it_is_a_card(root: Members, dialect: Dialect) -> None:
    """Refuse what nobody can negotiate by: other documents, and cards whose skills cannot be read."""
    remarks = root.remarks
    skills = root.mapping.get("skills")
    if skills is not None and not isinstance(skills, list):
        remarks.error("skills.not_a_list", "/skills", f"skills is {shown(skills)}; it must be a list of skills")
    elif skills and not any(isinstance(item, str | Mapping) for item in skills):
        remarks.error("skills.unreadable", "/skills", "none of the skills is an object")
    kind = what_else(root.mapping)
    # An agent that lost its last skill says so by an empty list, whatever else its card holds; protobuf JSON leaves it out.
    doubtful = bool(kind) if skills == [] else skills is None or dialect is Dialect.UNKNOWN
    if doubtful and not speaks_a2a(root.mapping):
        lacks = "no skills" if dialect is not Dialect.UNKNOWN else "no interface"
        seems = f"; it looks like {kind}" if kind else ""
        remarks.error(
            "card.not_a_card", "", f"the document is no A2A card: it has {lacks}, nor anything else of A2A's{seems}"
        )
    errors = [finding for finding in remarks.findings() if finding.level is Level.ERROR]
    if errors:
        raise CardInvalid(errors[0].message, findings=remarks.findings())


def _version(root: Members) -> str:
    value = root.value("version")
    if isinstance(value, int | float) and not isinstance(value, bool):
        root.remarks.repair("version.number", root.at("version"), "the version is a number; it is read as text")
        return str(value)
    return root.text("version")


def _interface_digest(interfaces: tuple[Interface, ...]) -> str:
    return digest([[item.url, item.binding, item.protocol_version, item.tenant] for item in interfaces])


def _security_digest(root: Members) -> str:
    keys = ("securitySchemes", "securityRequirements", "security", "authentication")
    stated = {key: value for key in keys if (value := root.value(key)) not in (None, {}, [])}
    for item in root.items("skills"):
        if isinstance(item[1], Mapping):
            own = {key: item[1][key] for key in keys if item[1].get(key) not in (None, {}, [])}
            if own:
                stated[f"skill {item[1].get('id')}"] = own
    return digest(stated)


def _signature_digest(root: Members) -> str:
    signatures = root.value("signatures")
    return digest(signatures) if signatures not in (None, [], {}) else ""
