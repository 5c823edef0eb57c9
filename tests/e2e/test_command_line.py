"""The command line as a person uses it: a service in one terminal, commands in another."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from process import started

SKILL = "summarize-v2"


def cardkeeper(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cardkeeper", *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=30, check=False, cwd=Path(__file__).parents[2]
    )


def test_a_session_from_resolve_to_drift(target: str, peer: Any) -> None:
    at = ("--server", target)
    resolved = cardkeeper("resolve", peer.url, SKILL, "--json", *at)
    assert resolved.returncode == 0
    resolution = json.loads(resolved.stdout)
    assert resolution["output_modes"] == ["text/markdown"]
    assert "text/markdown" in cardkeeper("resolve", peer.url, SKILL, *at).stdout
    assert json.loads(cardkeeper("agents", "--json", *at).stdout)

    near = cardkeeper("resolve", peer.url, "summarise-v2", *at)
    assert near.returncode == 1
    assert "SKILL_NOT_ADVERTISED" in near.stderr
    assert SKILL in near.stderr

    peer.become("A")
    failed = '{"kind":"task","id":"t","status":{"state":"failed","message":{"parts":[{"text":"unknown skill"}]}}}'
    reported = cardkeeper(
        "report", peer.url, SKILL, "-", "--fingerprint", resolution["skill_fingerprint"], "--json", *at, given=failed
    )
    assert reported.returncode == 1
    assert json.loads(reported.stdout)["verdict"] == "VERDICT_CARD_CHANGED"
    drift = cardkeeper("drift", *at)
    assert SKILL in drift.stdout
    assert "summarize-v3" in cardkeeper("card", peer.url, "--raw", *at).stdout

    wrong = '{"artifactId":"a","parts":[{"text":"x","mediaType":"image/png"}]}'
    validated = cardkeeper(
        "validate", peer.url, SKILL, "-", "--fingerprint", resolution["skill_fingerprint"], *at, given=wrong
    )
    assert validated.returncode == 1
    assert "REJECTED" in validated.stdout


def test_watch_prints_a_change_as_it_happens(target: str, peer: Any) -> None:
    cardkeeper("resolve", peer.url, SKILL, "--server", target)
    with started(sys.executable, "-u", "-m", "cardkeeper", "watch", "--server", target) as (first, process):
        assert first
        peer.become("A")
        cardkeeper("refresh", peer.url, "--server", target)
        assert process.stdout is not None
        line = process.stdout.readline()
        while SKILL not in line:
            assert line, "the watch ended"
            line = process.stdout.readline()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_drains_on_a_signal_and_says_so(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cardkeeper", "serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "s.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        greeting = [process.stdout.readline() for _ in range(4)]
        assert "listens on 127.0.0.1:" in greeting[0]
        assert "try" in greeting[2]
        process.send_signal(number)
        rest = process.stdout.read()
        assert process.wait(15) == 0
    assert "draining" in rest
    assert "stopped" in rest


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("resolve", "http://127.0.0.1:9", "s", "--server", "127.0.0.1:1", "--timeout", "2"), 3, "no service answers"),
        (("fingerprint", "/nonexistent.json"), 2, "cannot read"),
        (("serve", "--listen", "127.0.0.1:0", "--allow-network", "nonsense"), 2, "nonsense"),
        (("lint", "-"), 1, "refused"),
        (("serve", "--listen", "127.0.0.1:0", "--patterns", "/nonexistent.toml"), 3, "cannot use /nonexistent.toml"),
        (("serve", "--listen", "127.0.0.1:0", "--patterns", "Makefile"), 2, "no TOML"),
        (("serve", "--listen", "127.0.0.1:0", "--output-schemas", "Makefile"), 2, "no JSON"),
        (("serve", "--listen", "127.0.0.1:0", "--soft-ttl", "-5"), 2, "soft-ttl"),
        (("nonsense",), 2, "nonsense"),
    ],
)
def test_what_goes_wrong_is_said_in_a_line_with_its_exit_code(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = cardkeeper(*arguments, given="[]")
    assert done.returncode == code, done.stderr
    assert says in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_fingerprint_lint_and_diff_work_on_urls_and_files(peer: Any, tmp_path: Path) -> None:
    by_url = json.loads(cardkeeper("fingerprint", peer.url, "--json").stdout)
    assert set(by_url) == {"skill_fingerprint", "canonical"}
    assert json.loads(by_url["canonical"])["skills"][0]["id"] == SKILL
    card = {"name": "n", "version": "1", "url": "https://a.example", "skills": [{"id": SKILL, "tags": []}]}
    old, new = tmp_path / "0.json", tmp_path / "1.json"
    old.write_text(json.dumps(card))
    new.write_text(json.dumps(card | {"skills": [{"id": "other", "tags": []}]}))
    assert cardkeeper("lint", str(old)).returncode == 0
    assert cardkeeper("diff", str(old), str(old)).returncode == 0
    gone = cardkeeper("diff", str(old), str(new), "--json")
    assert gone.returncode == 1
    assert json.loads(gone.stdout)["silent"] is True
    assert cardkeeper("diff", str(old), str(new), "--fail-on", "never").returncode == 0
    steps = json.loads(cardkeeper("replay", str(tmp_path), "--json").stdout)
    assert [step["silent"] for step in steps] == [False, True]
