"""An A2A agent (a2a-sdk 1.x, with its 0.3 compatibility) that can be changed while it runs, as real agents are.

    python examples/agents/agent.py --port 9999
    curl -X POST localhost:9999/admin/variant/A     # see VARIANTS
    curl localhost:9999/admin/counts                # what was asked of it so far

Its card's `version` never moves: that is the point. With --etag-from-version neither does its ETag, as the specification
allows: a client that asks "changed since?" is then told "no" whatever happens.
"""

import argparse
import asyncio
import logging
import socket
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from a2a.utils.errors import InvalidParamsError
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
VERSION = "1.0.0"


@dataclass(frozen=True)
class Variant:
    """What the agent is at the moment."""

    skill: str = "summarize-v2"
    output: str = "text/markdown"
    description: str = "Summarizes a text."
    strict: bool = False
    """Refuse unknown skills at the RPC boundary."""
    untyped: bool = False
    """Send text without a media type, as older agents do."""


VARIANTS = {
    "base": Variant(),
    "A": Variant(skill="summarize-v3"),
    "A-strict": Variant(skill="summarize-v3", strict=True),
    "B": Variant(output="text/plain"),
    "C": Variant(description="Summarizes a text in the tone of a pirate."),
    "untyped": Variant(untyped=True),
}


class Agent(AgentExecutor):
    """Summarizes, if it is asked for the skill that it has."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.variant = VARIANTS["base"]
        self.tasks = 0

    def card(self) -> AgentCard:
        """The card of now."""
        return AgentCard(
            name="Summarizer",
            description="An agent that changes.",
            version=VERSION,
            supported_interfaces=[
                AgentInterface(url=f"{self.url}/", protocol_binding="JSONRPC", protocol_version="1.0"),
                AgentInterface(url=f"{self.url}/", protocol_binding="JSONRPC", protocol_version="0.3"),
            ],
            capabilities=AgentCapabilities(streaming=True, push_notifications=False),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[
                AgentSkill(
                    id=self.variant.skill,
                    name="Summarize",
                    description=self.variant.description,
                    tags=["text"],
                    input_modes=["text/plain"],
                    output_modes=[self.variant.output],
                )
            ],
        )

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Take the task; find out only then whether the skill is there, unless strict."""
        self.tasks += 1
        message = context.message
        if message is None:
            raise InvalidParamsError(message="a message is needed")
        wanted = str(dict(message.metadata).get("skillId", ""))
        known = wanted in ("", self.variant.skill)
        if not known and self.variant.strict:
            raise InvalidParamsError(message=f"Unknown skill: {wanted}")
        task = context.current_task or new_task_from_user_message(message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if not known:
            await updater.failed(new_text_message(f"unknown skill '{wanted}'"))
            return
        media_type = None if self.variant.untyped else self.variant.output
        text = "# Summary\n\nShort." if self.variant.output == "text/markdown" else "Summary: short."
        await updater.add_artifact([new_text_part(text, media_type=media_type)], name="summary")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing here takes long enough to be cancelled."""
        raise NotImplementedError


class CardEtagFromVersion(BaseHTTPMiddleware):
    """Replaces the card's ETag, which the SDK makes of the content, by one that is made of `version`."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Answer 304 to whoever holds a card of this version."""
        if request.url.path not in CARD_PATHS:
            return await call_next(request)
        etag = f'"{VERSION}"'
        if request.headers.get("If-None-Match") == etag:
            return Response(status_code=304, headers={"ETag": etag})
        response = await call_next(request)
        response.headers["ETag"] = etag
        return response


def application(agent: Agent, *, cache_control: str | None = None, etag_from_version: bool = False) -> Starlette:
    """The agent's routes: its card, JSON-RPC of both generations, and a back door for whoever demonstrates it."""
    counts: Counter[str] = Counter()

    async def current(_: AgentCard) -> AgentCard:
        return agent.card()

    async def change(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in VARIANTS:
            return JSONResponse({"error": f"one of {sorted(VARIANTS)}"}, 404)
        agent.variant = VARIANTS[name]
        return JSONResponse({"variant": name})

    async def redescribe(request: Request) -> Response:
        agent.variant = replace(agent.variant, description=(await request.body()).decode()[:500])
        return JSONResponse({})

    async def count(request: Request) -> Response:
        asked = {name: counts[name] for name in ("cards", "not_modified")}
        return JSONResponse({**asked, "tasks": agent.tasks})

    class Counting(BaseHTTPMiddleware):
        async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
            about_the_card = request.url.path in CARD_PATHS
            counts["cards"] += about_the_card
            response = await call_next(request)
            counts["not_modified"] += about_the_card and response.status_code == 304
            return response

    handler = DefaultRequestHandler(agent_executor=agent, task_store=InMemoryTaskStore(), agent_card=agent.card())
    app = Starlette(
        routes=[
            *create_agent_card_routes(agent.card(), card_modifier=current, cache_control=cache_control),
            *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True),
            Route("/admin/variant/{name}", change, methods=["POST"]),
            Route("/admin/description", redescribe, methods=["POST"]),
            Route("/admin/counts", count),
        ]
    )
    if etag_from_version:
        app.add_middleware(CardEtagFromVersion)
    app.add_middleware(Counting)
    return app


async def serve(port: int, **options: Any) -> None:
    """Serve until interrupted; the first line of output says where."""
    # What the SDK logs of refused tasks is what is demonstrated here.
    logging.getLogger("a2a").setLevel(logging.CRITICAL)
    listener = socket.create_server(("127.0.0.1", port))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(application(Agent(url), **options), log_level="warning"))
    print(url, flush=True)
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=9999, help="0 takes any free one")
    parser.add_argument("--cache-control", metavar="VALUE", help="what the card says of its lifetime, e.g. max-age=60")
    parser.add_argument("--etag-from-version", action="store_true", help="the card's ETag never moves either")
    asyncio.run(serve(**vars(parser.parse_args())))
