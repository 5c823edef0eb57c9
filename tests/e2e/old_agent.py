"""An agent on a2a-sdk 0.2 or 0.3, run in an environment of its own (see test_old_sdks.py). Prints its URL.

The same shape as examples/agents/agent.py: POST /admin/variant/NAME changes it behind an unmoved version.
"""

import asyncio
import base64
import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, InvalidParamsError, Part
from a2a.utils import new_agent_text_message, new_task
from a2a.utils.errors import ServerError
from starlette.responses import JSONResponse
from starlette.routing import Route

MARKDOWN, PLAIN = "text/markdown", "text/plain"
VARIANTS = {
    # name: skill id, output mode, whether unknown skills are refused at the RPC boundary
    "base": ("summarize-v2", MARKDOWN, False),
    "A": ("summarize-v3", MARKDOWN, False),
    "A-strict": ("summarize-v3", MARKDOWN, True),
    "B": ("summarize-v2", PLAIN, False),
}


def skills(variant):
    skill_id, output, _ = VARIANTS[variant]
    return [
        AgentSkill(
            id=skill_id,
            name="Summarize",
            description="Summarizes a text.",
            tags=["text"],
            input_modes=[PLAIN],
            output_modes=[output],
        )
    ]


def file(media_type):
    content = base64.b64encode(b"a summary").decode()
    return {"kind": "file", "file": {"bytes": content, "mimeType": media_type, "name": "summary"}}


class Agent(AgentExecutor):
    variant = "base"

    async def execute(self, context, event_queue):
        skill_id, output, strict = VARIANTS[self.variant]
        wanted = (context.message.metadata or {}).get("skillId", "")
        if wanted != skill_id and strict:
            raise ServerError(error=InvalidParamsError(message=f"Unknown skill: {wanted}"))
        task = context.current_task or new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, getattr(task, "context_id", None) or task.contextId)
        if wanted != skill_id:
            await updater.failed(new_agent_text_message(f"Unknown skill: {wanted}", task_id=task.id))
            return
        # Text has no place for its media type in these generations; files have.
        asked_for_file = "file" in context.get_user_input()
        part = file(output) if asked_for_file else {"kind": "text", "text": "# Summary"}
        await updater.add_artifact([Part.model_validate(part)], name="summary")
        await updater.complete()

    async def cancel(self, context, event_queue):
        raise NotImplementedError


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="Old summarizer",
        description="Speaks as agents did.",
        url=f"{url}/",
        version="1.0.0",
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=[PLAIN],
        default_output_modes=[PLAIN],
        skills=skills("base"),
    )
    fetched = 0

    agent = Agent()

    async def change(request):
        agent.variant = request.path_params["name"]
        card.skills = skills(agent.variant)
        return JSONResponse({})

    async def counts(request):
        return JSONResponse({"cards": fetched})

    handler = DefaultRequestHandler(agent_executor=agent, task_store=InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
    app.router.routes += [
        Route("/admin/variant/{name}", change, methods=["POST"]),
        Route("/admin/counts", counts),
    ]

    async def counting(scope, receive, send):
        nonlocal fetched
        if scope["type"] == "http" and scope["path"].startswith("/.well-known/"):
            fetched += 1
        await app(scope, receive, send)

    print(url, flush=True)
    server = uvicorn.Server(uvicorn.Config(counting, log_level="critical"))
    await server.serve(sockets=[listener])


asyncio.run(main())
