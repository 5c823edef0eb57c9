"""An agent on a2a-sdk 0.2 or 0.3, run in an environment of its own (see test_old_sdks.py). Prints its URL.

The same shape as examples/agents/agent.py: POST /admin/retire retires its skill behind an unmoved version.
"""

import asyncio
import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_agent_text_message, new_task
from starlette.responses import JSONResponse
from starlette.routing import Route


def skill(skill_id, output):
    return AgentSkill(
        id=skill_id,
        name="Summarize",
        description="Summarizes a text.",
        tags=["text"],
        input_modes=["text/plain"],
        output_modes=[output],
    )


class Agent(AgentExecutor):
    def __init__(self, card):
        self.card = card

    async def execute(self, context, event_queue):
        task = context.current_task or new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, getattr(task, "context_id", None) or task.contextId)
        wanted = (context.message.metadata or {}).get("skillId", "")
        if wanted not in {known.id for known in self.card.skills}:
            await updater.failed(new_agent_text_message(f"Unknown skill: {wanted}", task_id=task.id))
            return
        await updater.add_artifact([Part(root=TextPart(text="# Summary"))], name="summary")
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
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill("summarize-v2", "text/markdown")],
    )
    fetched = 0

    async def retire(request):
        card.skills = [skill("summarize-v3", "text/markdown")]
        return JSONResponse({})

    async def counts(request):
        return JSONResponse({"cards": fetched})

    handler = DefaultRequestHandler(agent_executor=Agent(card), task_store=InMemoryTaskStore())
    app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
    app.router.routes += [
        Route("/admin/retire", retire, methods=["POST"]),
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
