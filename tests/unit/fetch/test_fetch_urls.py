"""URLs and addresses: one spelling for each agent, and every address judged."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardkeeper.errors import EgressRefused, InvalidInput
from cardkeeper.fetch.address import agent_id_for, canonical_agent_url
from cardkeeper.fetch.candidate import candidates
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.fetch.special_addresses import Reach, classify


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("https://Agent.Example.COM", "https://agent.example.com"),
        ("https://agent.example.com/", "https://agent.example.com"),
        ("https://agent.example.com:443/a/", "https://agent.example.com/a"),
        ("http://agent.example.com:80", "http://agent.example.com"),
        ("http://agent.example.com:8080/", "http://agent.example.com:8080"),
        ("https://agent.example.com/a/./b/../c", "https://agent.example.com/a/c"),
        ("https://agent.example.com/../../x", "https://agent.example.com/x"),
        ("https://agent.example.com/%7euser/%2f", "https://agent.example.com/~user/%2F"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://agent.example.com./", "https://agent.example.com"),
        ("http://[::1]:9/x", "http://[::1]:9/x"),
        ("http://[2001:DB8:0:0::1]", "http://[2001:db8::1]"),
        ("https://h.example/.well-known/agent-card.json", "https://h.example"),
        ("https://h.example/a/.well-known/agent.json", "https://h.example/a"),
        ("https://h.example/cards/x.json", "https://h.example/cards/x.json"),
        ("http://my_agent:8000", "http://my_agent:8000"),
        ("http://①②⑦.0.0.1", "http://127.0.0.1"),  # and is then judged as what it is
    ],
)
def test_a_url_has_one_spelling(text: str, canonical: str) -> None:
    assert canonical_agent_url(text) == canonical
    assert canonical_agent_url(canonical) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "agent.example.com",
        "//agent.example.com",
        "ftp://agent.example.com",
        "file:///etc/passwd",
        "http://",
        "http:///x",
        "http://user@h.example",
        "http://user:secret@h.example",
        "http://h.example:0",
        "http://h.example:65536",
        "http://h.example:x",
        "http://h.example?q",
        "http://h.example#f",
        "http://h .example",
        "http://h.example/\n",
        "http://h.example\\x",
        "http://0177.0.0.1",
        "http://2130706433",
        "http://127.1",
        "http://0x7f.1",
        "http://1.2.3.4.5",
        "http://[::1%25eth0]",
        "http://[::1",
        "http://-h.example",
        "http://h..example",
        "http://" + "a" * 64 + ".example",
        "http://h.example/" + "x" * 3000,
    ],
)
def test_what_is_no_agent_url_is_refused_and_secrets_are_not_repeated(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        canonical_agent_url(text)
    assert caught.value.field == "agent.agent_url"
    assert "secret" not in caught.value.message


@given(st.text(max_size=60) | st.from_regex(r"https?://[a-zA-Z0-9.\[\]:%@/_-]{1,60}", fullmatch=True))
def test_any_text_is_a_url_in_one_spelling_or_refused(text: str) -> None:
    try:
        canonical = canonical_agent_url(text)
    except InvalidInput:
        return
    assert canonical_agent_url(canonical) == canonical
    assert agent_id_for(canonical) == agent_id_for(canonical).lower()
    assert len(agent_id_for(canonical)) <= 63


def test_candidates_are_most_promising_first_and_each_once() -> None:
    assert candidates("https://h.example/a") == (
        "https://h.example/a/.well-known/agent-card.json",
        "https://h.example/a/.well-known/agent.json",
        "https://h.example/.well-known/agent-card.json",
        "https://h.example/.well-known/agent.json",
    )
    remembered = "https://h.example/.well-known/agent.json"
    assert candidates("https://h.example", remembered) == (remembered, "https://h.example/.well-known/agent-card.json")
    assert candidates("https://h.example/x.json") == ("https://h.example/x.json",)


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("93.184.216.34", "public"),
        ("2606:4700::1111", "public"),
        ("192.0.0.9", "public"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("172.32.0.1", "public"),
        ("192.168.1.1", "private"),
        ("fd12::1", "private"),
        ("100.64.0.1", "shared-address-space"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("169.254.169.254", "cloud-metadata"),
        ("100.100.100.200", "cloud-metadata"),
        ("168.63.129.16", "cloud-metadata"),
        ("fd00:ec2::254", "cloud-metadata"),
        ("0.0.0.0", "this-network"),  # noqa: S104 - an address to refuse
        ("::", "unspecified"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "broadcast"),
        ("240.0.0.1", "reserved"),
        ("198.18.0.1", "benchmarking"),
        ("192.0.2.1", "documentation"),
        ("2001:db8::1", "documentation"),
        ("3fff::1", "documentation"),
        ("::127.0.0.1", "ipv4-compatible"),
        ("::ffff:127.0.0.1", "ipv4-mapped"),
        ("::ffff:8.8.8.8", "ipv4-mapped"),
        ("64:ff9b::7f00:1", "nat64-loopback"),
        ("64:ff9b::808:808", "public"),
        ("64:ff9b::a9fe:a9fe", "nat64-cloud-metadata"),
        ("64:ff9b:1::1", "local-nat64"),
        ("2002:7f00:1::", "6to4"),
        ("2001:0:1::1", "teredo"),
        ("fec0::1", "site-local"),
        ("5f00::1", "segment-routing"),
        ("4000::1", "unallocated"),
    ],
)
def test_every_kind_of_address_is_known_by_its_rule(address: str, rule: str) -> None:
    block = classify(ip_address(address))
    assert block.rule == rule
    policy = EgressPolicy()
    if rule == "public":
        policy.check_address(address)
    else:
        with pytest.raises(EgressRefused) as caught:
            policy.check_address(address)
        assert caught.value.metadata["rule"] == rule
        assert address not in caught.value.message


def test_allowances_open_what_they_name_and_nothing_else() -> None:
    EgressPolicy(allow_loopback=True).check_address("127.0.0.1")
    EgressPolicy(allow_private=True).check_address("10.1.2.3")
    EgressPolicy(allow_networks=("169.254.0.0/16",)).check_address("169.254.1.1")
    everything = EgressPolicy(allow_loopback=True, allow_private=True, allow_networks=("0.0.0.0/0", "::/0"))
    for never in ("169.254.169.254", "224.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"):
        with pytest.raises(EgressRefused):
            everything.check_address(never)
    for closed in ("10.0.0.1", "169.254.1.1"):
        with pytest.raises(EgressRefused):
            EgressPolicy(allow_loopback=True).check_address(closed)


@given(st.ip_addresses(v=4))
def test_no_ipv6_address_makes_a_special_ipv4_address_public(inner: object) -> None:
    if classify(inner).reach is Reach.PUBLIC:  # type: ignore[arg-type]
        return
    number = int(inner)  # type: ignore[call-overload]
    for outer in (number, 0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert classify(ip_address(outer.to_bytes(16, "big"))).reach is not Reach.PUBLIC
