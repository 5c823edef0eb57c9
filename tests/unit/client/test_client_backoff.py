"""How long the client waits before it comes back."""

import json

from cardkeeper_client.backoff import Backoff
from cardkeeper_client.channel import OPTIONS


def test_the_ceiling_doubles_to_ten_seconds_and_starts_anew_after_a_stream_in_sync() -> None:
    backoff = Backoff(lambda: 1.0)
    assert [backoff.after() for _ in range(8)] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    backoff.succeeded()
    assert backoff.after() == 0.2


def test_the_jitter_is_full() -> None:
    assert Backoff(lambda: 0.0).after() == 0.0
    assert Backoff(lambda: 0.5).after() == 0.1


def test_what_a_server_asks_for_is_waited_at_least_and_not_in_step() -> None:
    assert Backoff(lambda: 0.0).after(3.0) == 3.0
    assert Backoff(lambda: 1.0).after(3.0) == 3.2


def test_what_a_server_grants_is_waited_at_most() -> None:
    assert Backoff(lambda: 1.0).within(4.0) == 4.0
    assert Backoff(lambda: 0.25).within(4.0) == 1.0


def test_no_server_sends_a_client_away_for_good() -> None:
    assert Backoff(lambda: 1.0).after(1e9) == 60.2
    assert Backoff(lambda: 1.0).within(1e9) == 60.0


def test_the_stream_is_not_sent_again_behind_the_clients_back() -> None:
    config = json.loads(dict(OPTIONS)["grpc.service_config"])  # type: ignore[arg-type] # this option is text
    repeated = {name["method"] for name in config["methodConfig"][0]["name"]}
    assert repeated == {"ResolveSkill", "FindSkills", "ReportTaskOutcome", "ValidateArtifact"}
    assert config["methodConfig"][0]["retryPolicy"]["retryableStatusCodes"] == ["UNAVAILABLE"]
