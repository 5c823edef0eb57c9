"""Cards of every kind: accepted, repaired or refused, with the finding that says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from cardkeeper.card.finding import Level
from cardkeeper.card.fingerprint import canonical_document, fingerprint_document
from cardkeeper.card.model import Dialect
from cardkeeper.card.parse import parse_card
from cardkeeper.errors import CardInvalid

ROOT = Path(__file__).resolve().parents[3]
VECTORS = ROOT.parent / "shared" / "fingerprint-vectors.json"
CORPUS = ROOT.parent / "shared" / "corpus" / "cards"
URL = "https://agent.example/.well-known/agent-card.json"
BASE: dict[str, Any] = {"name": "n", "version": "1", "url": "https://agent.example/a2a"}
SKILL: dict[str, Any] = {"id": "s", "name": "S", "description": "d", "tags": ["t"]}


def parsed(**fields: Any) -> Any:
    return parse_card(json.dumps(BASE | {"skills": [SKILL]} | fields).encode(), URL)


def found(card: Any) -> dict[str, tuple[str, Level]]:
    return {item.id: (item.pointer, item.level) for item in card.findings}


def refused(document: Any) -> dict[str, str]:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    with pytest.raises(CardInvalid) as caught:
        parse_card(body, URL)
    return {item.id: item.message for item in caught.value.findings if item.level is Level.ERROR}


@pytest.mark.parametrize(
    ("fields", "dialect"),
    [
        (
            {"url": None, "supportedInterfaces": [{"url": "https://a.example", "protocolBinding": "JSONRPC"}]},
            Dialect.V1_0,
        ),
        ({"url": None, "supported_interfaces": [{"url": "https://a.example"}]}, Dialect.V1_0),
        ({"supportedInterfaces": [{"url": "https://a.example"}]}, Dialect.HYBRID),
        ({"protocolVersion": "0.3.0"}, Dialect.V0_3),
        ({"protocolVersion": "1.0"}, Dialect.V0_3),  # claims 1.0, is written in 0.3
        ({"preferredTransport": "GRPC"}, Dialect.V0_3),
        ({"additionalInterfaces": []}, Dialect.V0_3),
        ({"protocolVersion": "0.2.6"}, Dialect.V0_2),
        ({}, Dialect.V0_2),
        ({"authentication": {"schemes": ["bearer"]}}, Dialect.V0_1),
        ({"url": None, "defaultInputModes": ["text"]}, Dialect.UNKNOWN),
    ],
)
def test_shape_decides_the_dialect(fields: dict[str, Any], dialect: Dialect) -> None:
    assert parsed(**fields).dialect is dialect


def test_interfaces_of_every_generation_stand_in_order_of_preference_each_once() -> None:
    card = parsed(
        supportedInterfaces=[
            {"url": "host.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0.1", "tenant": "t"},
            {"url": "https://agent.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ],
        protocolVersion="0.3.0",
        additionalInterfaces=[
            {"url": "https://agent.example/a2a", "transport": "JSONRPC"},
            {"url": "https://agent.example/rest", "transport": "HTTP+JSON"},
        ],
    )
    assert [(item.url, item.binding, item.protocol_version, item.tenant) for item in card.interfaces] == [
        ("host.example:443", "GRPC", "1.0", "t"),
        ("https://agent.example/a2a", "JSONRPC", "1.0", ""),
        ("https://agent.example/rest", "HTTP+JSON", "0.3", ""),
    ]


def test_effective_modes_are_the_skills_own_or_the_cards_defaults_never_both() -> None:
    card = parsed(
        defaultInputModes=["text/plain"],
        defaultOutputModes=["text/plain", "text/html"],
        skills=[
            SKILL | {"id": "own", "outputModes": ["image/png"]},
            SKILL | {"id": "empty", "outputModes": [], "inputModes": None},
        ],
    )
    own, empty = card.skills
    assert (own.input_modes, own.output_modes) == (("text/plain",), ("image/png",))
    assert (empty.input_modes, empty.output_modes) == (("text/plain",), ("text/plain", "text/html"))


@pytest.mark.parametrize(
    ("fields", "finding", "pointer", "level"),
    [
        ({"skills": ["translate"]}, "skill.bare_string", "/skills/0", Level.REPAIR),
        ({"skills": [SKILL, 7]}, "skill.not_an_object", "/skills/1", Level.REPAIR),
        ({"skills": [SKILL | {"id": 7}]}, "skill.id.number", "/skills/0/id", Level.REPAIR),
        ({"skills": [{"name": "x", "tags": []}]}, "skill.id.missing", "/skills/0/id", Level.WARNING),
        ({"skills": [SKILL, SKILL]}, "skill.id.duplicate", "/skills", Level.WARNING),
        ({"skills": [], "protocolVersion": "0.3.0"}, "skills.empty", "/skills", Level.WARNING),
        ({}, "skill.modes.undeclared", "/skills/0", Level.NOTE),
        ({"defaultInputModes": "text/plain"}, "list.single_string", "/defaultInputModes", Level.REPAIR),
        ({"defaultInputModes": ["text/plain", None, 3]}, "list.not_a_string", "/defaultInputModes", Level.REPAIR),
        ({"defaultInputModes": {"a": 1}}, "member.wrong_type", "/defaultInputModes", Level.WARNING),
        ({"defaultInputModes": ["speech"]}, "mode.not_a_media_type", "/defaultInputModes", Level.NOTE),
        ({"default_input_modes": ["text/plain"]}, "key.snake_case", "/default_input_modes", Level.NOTE),
        ({"capabilities": {"streaming": "true"}}, "flag.not_boolean", "/capabilities/streaming", Level.WARNING),
        ({"capabilities": ["streaming"]}, "member.wrong_type", "/capabilities", Level.WARNING),
        ({"version": 2}, "version.number", "/version", Level.REPAIR),
        ({"version": None}, "version.missing", "/version", Level.WARNING),
        ({"name": None}, "name.missing", "/name", Level.WARNING),
        ({"url": "/a2a"}, "interface.url.relative", "/url", Level.REPAIR),
        ({"url": "http://localhost:9999"}, "interface.url.private", "/url", Level.WARNING),
        ({"url": "http://10.0.0.1"}, "interface.url.private", "/url", Level.WARNING),
        ({"url": "gopher://a.example"}, "interface.url.scheme", "/url", Level.WARNING),
        ({"url": ""}, "interface.url.missing", "/url", Level.WARNING),
        ({"url": None, "defaultInputModes": ["text/plain"]}, "interface.missing", "", Level.WARNING),
        (
            {"capabilities": {"extensions": [{}]}},
            "extension.uri.missing",
            "/capabilities/extensions/0/uri",
            Level.WARNING,
        ),
    ],
)
def test_what_is_odd_is_said_with_its_place_and_the_card_is_kept(
    fields: dict[str, Any], finding: str, pointer: str, level: Level
) -> None:
    assert found(parsed(**fields))[finding] == (pointer, level)


def test_a_relative_url_is_resolved_against_the_cards_own() -> None:
    assert parsed(url="../a2a").interfaces[0].url == "https://agent.example/a2a"


@pytest.mark.parametrize(
    ("document", "finding", "says"),
    [
        (b"", "document.empty", "empty"),
        (b"<!doctype html>", "document.html", "HTML"),
        (b"\xff\xfe{}", "document.not_utf8", "UTF-8"),
        (b"{", "document.not_json", "JSON"),
        (b'{"a": NaN}', "document.not_json", "NaN"),
        (b'{"a": 1e999}', "document.number_range", "1e999"),
        (b"[]", "document.not_an_object", "list"),
        (b"3", "document.not_an_object", "object"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, "document.too_deep", "64"),
        (b'"' + b"x" * 1_100_000 + b'"', "document.too_large", "limit"),
        ({}, "card.not_a_card", "no A2A card"),
        ({"skills": {"a": {}}}, "skills.not_a_list", "list"),
        (BASE | {"skills": [1, None]}, "skills.unreadable", "object"),
        ({"name": "x", "version": "1", "skills": ["a", "b"]}, "card.not_a_card", "no interface"),
        ({"name": "x", "version": "1", "dependencies": {}, "skills": ["a"]}, "card.not_a_card", "package"),
        ({"agent": BASE | {"skills": [SKILL]}}, "card.not_a_card", 'inside "agent"'),
        ({"openapi": "3.1.0", "info": {}}, "card.not_a_card", "OpenAPI"),
        ({"mcpServers": {}}, "card.not_a_card", "MCP"),
        ({"name": "x", "url": "https://a.example", "start_url": "/"}, "card.not_a_card", "web app manifest"),
    ],
)
def test_what_nobody_could_negotiate_by_is_refused_with_its_reason(document: Any, finding: str, says: str) -> None:
    assert says in refused(document)[finding]


def test_a_document_with_a_mark_and_duplicate_keys_is_read_as_all_readers_do() -> None:
    body = (
        b"\xef\xbb\xbf" + b'{"name": "a", "name": "b", "url": "https://a.example", "skills": [{"id": "s", "tags": []}]}'
    )
    card = parse_card(body, URL)
    assert card.name == "b"
    assert {"document.bom", "document.duplicate_key"} <= found(card).keys()


def test_a_minimal_document_with_a_skill_of_a2as_own_is_a_card() -> None:
    body = b'{"version": "1.0", "skills": [{"id": "s", "name": "s", "description": "d", "tags": []}]}'
    assert [skill.id for skill in parse_card(body, URL).skills] == ["s"]


def test_an_agent_that_lost_its_last_skill_is_believed() -> None:
    for document in (b'{"version": "1.0", "skills": []}', b'{"name": "n", "url": "https://a.example", "skills": []}'):
        assert parse_card(document, URL).skills == ()


def test_proto_json_that_leaves_empty_lists_out_is_a_card_without_skills() -> None:
    card = parse_card(b'{"name": "n", "supportedInterfaces": [{"url": "https://a.example"}], "version": "1"}', URL)
    assert card.skills == ()


def test_output_schemas_come_by_the_extension_and_a_wrong_one_is_said() -> None:
    schemas = {"s": {"type": "object"}, "other": 3}
    extension = {"uri": "https://cardkeeper.dev/a2a/output-schemas/v1", "params": {"skills": schemas}}
    card = parsed(capabilities={"extensions": [extension]})
    assert json.loads(card.skills[0].output_schema) == {"type": "object"}
    assert "schema.not_a_schema" in found(card)


def test_the_fingerprint_vectors_pass_bit_for_bit() -> None:
    if not VECTORS.exists():
        pytest.skip("the shared vectors are not here")
    vectors = json.loads(VECTORS.read_text())
    assert vectors
    for vector in vectors:
        assert canonical_document(vector["card"]) == vector["canonical"], vector["name"]
        assert fingerprint_document(vector["card"]) == vector["skill_fingerprint"], vector["name"]


def test_a_fingerprint_worked_out_by_hand() -> None:
    document = {
        "skills": [{"id": "é", "outputModes": ["b/b", "a/a"]}, "plain"],
        "defaultInputModes": ["text"],
        "capabilities": {"streaming": True},
    }
    assert canonical_document(document) == (
        '{"pushNotifications":false,"skills":['
        '{"id":"plain","inputModes":["text"],"outputModes":[]},'
        '{"id":"\\u00e9","inputModes":["text"],"outputModes":["a/a","b/b"]}],"streaming":true}'
    )


def test_real_cards_are_accepted_or_refused_as_the_table_says() -> None:
    table = ROOT / "tests" / "data" / "corpus_cards.tsv"
    if not CORPUS.exists():
        pytest.skip("the shared corpus is not here")
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    assert len(rows) == len(list(CORPUS.iterdir()))
    for name, verdict, dialect, skills, *_ in rows:
        try:
            card = parse_card((CORPUS / name).read_bytes(), URL)
            got = ["accepted", card.dialect.value, str(len(card.skills))]
        except CardInvalid:
            got = ["refused", "", ""]
        assert got == [verdict, dialect, skills], name
