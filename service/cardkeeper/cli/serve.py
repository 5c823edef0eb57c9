"""`cardkeeper serve`: run the service until it is told to stop."""

import asyncio
import gc
import importlib.util
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from cardkeeper import __version__
from cardkeeper.app import Application
from cardkeeper.cli.connection import DEFAULT_SERVER
from cardkeeper.drift.model import ArtifactPolicy
from cardkeeper.errors import InvalidInput
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.settings import Settings
from cardkeeper.store.base import History, StoreUnavailable

app = typer.Typer()


@app.command()
def serve(
    listen: Annotated[
        str, typer.Option(envvar="CARDKEEPER_LISTEN", help="host:port; port 0 takes any free one.")
    ] = "127.0.0.1:50051",
    data: Annotated[
        Path | None,
        typer.Option(envvar="CARDKEEPER_DATA", help="SQLite file that state is kept in; none: memory only."),
    ] = None,
    history: Annotated[
        int, typer.Option(min=1, help="Entries of the revision log to keep; clients away for longer get a difference.")
    ] = 10_000,
    allow_loopback: Annotated[bool, typer.Option(help="Fetch cards from this machine.")] = False,
    allow_private: Annotated[bool, typer.Option(help="Fetch cards from private networks.")] = False,
    allow_network: Annotated[
        list[str] | None, typer.Option(help="Fetch cards from this network (CIDR); repeatable.")
    ] = None,
    discover: Annotated[bool, typer.Option(help="Keep agents that clients name by URL, unregistered.")] = True,
    soft_ttl: Annotated[
        float, typer.Option(min=0.1, help="Seconds a card is fresh where its source says nothing.")
    ] = 300.0,
    hard_ttl: Annotated[
        float, typer.Option(min=0.1, help="Seconds a card is served while its source is away.")
    ] = 86_400.0,
    min_ttl: Annotated[float, typer.Option(min=0.0, help="Least seconds granted to a source's own max-age.")] = 30.0,
    artifact_policy: Annotated[
        ArtifactPolicy, typer.Option(help="What becomes of artifact parts that state no type.")
    ] = ArtifactPolicy.CONFIRM,
    patterns: Annotated[Path | None, typer.Option(help="TOML file of text patterns, beside the built-in ones.")] = None,
    output_schemas: Annotated[
        Path | None, typer.Option(help="JSON file of output schemas: agent URL (or *) to skill id to JSON Schema.")
    ] = None,
    admin_token: Annotated[
        str,
        typer.Option(envvar="CARDKEEPER_ADMIN_TOKEN", show_default=False, help="Token for changing the fleet."),
    ] = "",
    tls_cert: Annotated[Path | None, typer.Option(help="PEM certificate chain.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM private key.")] = None,
    log_level: Annotated[str, typer.Option(envvar="CARDKEEPER_LOG_LEVEL")] = "INFO",
) -> None:
    """Run the service until SIGINT or SIGTERM; both drain it, a second one ends it at once."""
    try:
        logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        settings = Settings(
            listen=listen,
            data=data,
            history=History(events=history),
            egress=EgressPolicy(
                allow_loopback=allow_loopback, allow_private=allow_private, allow_networks=tuple(allow_network or ())
            ),
            fleet=FleetPolicy(
                discover=discover,
                soft_lifetime=soft_ttl,
                hard_lifetime=hard_ttl,
                min_lifetime=min(min_ttl, soft_ttl),
            ),
            artifact_policy=artifact_policy,
            patterns=patterns,
            output_schemas=output_schemas,
            admin_token=admin_token,
            tls_certificate=tls_cert,
            tls_key=tls_key,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        _runner()(_serve(settings))
    except InvalidInput as error:
        print(f"cardkeeper: {error.message}", file=sys.stderr)
        raise typer.Exit(2) from error
    except (StoreUnavailable, OSError, ValueError) as error:
        print(f"cardkeeper: {_in_words(error)}", file=sys.stderr)
        raise typer.Exit(3) from error


def _in_words(error: Exception) -> str:
    """What is wrong, for a person; Python says of files only "[Errno 2]"."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"cannot use {error.filename}: {error.strerror}"
    return str(error)


def _runner() -> Callable[[Coroutine[Any, Any, None]], None]:
    """Uvloop where it is installed: about a tenth faster."""
    if importlib.util.find_spec("uvloop"):
        import uvloop

        run: Callable[[Coroutine[Any, Any, None]], None] = uvloop.run
        return run
    return asyncio.run


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with Application(settings) as service:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _asked_to_stop, stop)
        # What is loaded by now stays: the collector need not go through it again and again.
        gc.collect()
        gc.freeze()
        _greet(settings, service)
        await stop.wait()
        print("draining", flush=True)
    print("stopped", flush=True)


def _asked_to_stop(stop: asyncio.Event) -> None:
    if stop.is_set():
        # The second time means now: the store is safe at any instant.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    stop.set()


def _program() -> str:
    """How this program was called, so that the same works in another terminal of the same folder."""
    called = Path(sys.argv[0])
    if called.name != "cardkeeper":
        return f"{sys.executable} -m cardkeeper"
    return str(called.relative_to(Path.cwd()) if called.is_relative_to(Path.cwd()) else called)


def _greet(settings: Settings, service: Application) -> None:
    address = f"{settings.listen.rpartition(':')[0]}:{service.port}"
    command = f"{_program()} agents" + ("" if address == DEFAULT_SERVER else f" --server {address}")
    kept = f"{settings.data}" if settings.data else "memory only (--data FILE keeps it)"
    print(
        f"cardkeeper {__version__} listens on {address}\n"
        f"  state  {kept}; {len(service.registry)} agents, revision {service.registry.revisions.sequence}\n"
        f"  try    {command}\n"
        f"  stop   Ctrl-C",
        flush=True,
    )
