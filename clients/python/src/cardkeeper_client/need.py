"""What a caller needs of a skill, as the key that resolutions are kept under."""

from typing import NamedTuple

from cardkeeper_client.v1 import agent_ref_pb2, discovery_service_pb2, observation_pb2, resolution_pb2, revision_pb2


class Need(NamedTuple):
    """An agent, by URL or by "agents/ID", and what is needed of it. A tuple: the quickest key there is."""

    agent: str
    skill_id: str
    input_modes: tuple[str, ...] = ()
    """Media types that will be sent: the skill must take each."""
    output_modes: tuple[str, ...] = ()
    """Media types that are accepted back: the skill must offer one."""
    streaming: bool = False
    push_notifications: bool = False

    def request(self, *, refetch: bool = False) -> discovery_service_pb2.ResolveSkillRequest:
        """The question to the service."""
        return discovery_service_pb2.ResolveSkillRequest(
            agent=agent_ref(self.agent),
            need=self.skill_need(),
            consistency=revision_pb2.Consistency(refetch=revision_pb2.Refetch()) if refetch else None,
        )

    def skill_need(self) -> resolution_pb2.SkillNeed:
        """What is needed, of whatever agent."""
        return resolution_pb2.SkillNeed(
            skill_id=self.skill_id,
            input_modes=self.input_modes,
            output_modes=self.output_modes,
            streaming=self.streaming,
            push_notifications=self.push_notifications,
        )

    def task_call(self) -> observation_pb2.TaskCall:
        """How a task under this need is asked for."""
        return observation_pb2.TaskCall(
            input_modes=self.input_modes,
            accepted_output_modes=self.output_modes,
            streaming=self.streaming,
            push_notifications=self.push_notifications,
        )


def agent_ref(agent: str) -> agent_ref_pb2.AgentRef:
    """A reference by name or by URL."""
    if agent.startswith("agents/"):
        return agent_ref_pb2.AgentRef(name=agent)
    return agent_ref_pb2.AgentRef(agent_url=agent)
