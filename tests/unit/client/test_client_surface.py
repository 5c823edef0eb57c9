"""The public surface of the Python client is a promise: what is added or removed here is a release note."""

import inspect
import re
from importlib.metadata import requires, version
from importlib.resources import files

import cardkeeper_client
from cardkeeper_client import Cardkeeper, CardkeeperAsync

NAMES = [
    "AgentContradictsCardError",
    "ArtifactSchemaDriftError",
    "Cardkeeper",
    "CardkeeperAsync",
    "CardkeeperError",
    "ClosedError",
    "DriftError",
    "ForkedError",
    "NotJudgedError",
    "Resolution",
    "ServiceError",
    "ServiceUnavailableError",
    "SkillRefusedError",
    "StaleAgentCardError",
]
METHODS = ["call", "close", "find", "in_sync", "report", "resolve", "validate", "wait_until_in_sync"]


def public(kind: type) -> list[str]:
    return sorted(name for name in vars(kind) if not name.startswith("_"))


def test_the_package_exports_what_it_promises() -> None:
    assert cardkeeper_client.__all__ == NAMES
    assert all(getattr(cardkeeper_client, name).__doc__ for name in NAMES)


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    assert public(Cardkeeper) == public(CardkeeperAsync) == METHODS
    for name in ["__init__", *METHODS]:
        ours, theirs = getattr(Cardkeeper, name), getattr(CardkeeperAsync, name)
        if isinstance(ours, property):
            continue
        for (mine, one), (other, another) in zip(
            inspect.signature(ours).parameters.items(), inspect.signature(theirs).parameters.items(), strict=True
        ):
            assert (mine, one.kind, one.default) == (other, another.kind, another.default)


def test_it_needs_grpc_and_protobuf_alone_and_is_typed() -> None:
    needed = [re.split("[<>=]", line)[0] for line in requires("cardkeeper-client") or []]
    assert sorted(needed) == ["grpcio", "protobuf"]
    assert files("cardkeeper_client").joinpath("py.typed").is_file()
    assert cardkeeper_client.__version__ == version("cardkeeper-client")
