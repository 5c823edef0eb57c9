"""FleetService: which agents are kept, and what became of their cards."""

from cardkeeper.card.compare import compare
from cardkeeper.card.model import Card
from cardkeeper.card.parse import parse_card
from cardkeeper.clock import Clock
from cardkeeper.errors import NotFound
from cardkeeper.fetch.address import canonical_agent_url
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.keeper import Keeper
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.revision_log import Revision
from cardkeeper.fleet.statistics import Statistics
from cardkeeper.rpc import decode, encode
from cardkeeper.rpc.endpoint import Caller
from cardkeeper.rpc.page import page_size, read_token, write_token
from cardkeeper.store.base import StoredCard
from cardkeeper.v1 import agent_pb2
from cardkeeper.v1 import fleet_service_pb2 as pb


class Fleet:
    """Handlers of FleetService."""

    def __init__(self, registry: Registry, keeper: Keeper, clock: Clock, statistics: Statistics) -> None:
        self._registry = registry
        self._keeper = keeper
        self._clock = clock
        self._statistics = statistics

    async def register_agent(self, request: pb.RegisterAgentRequest, caller: Caller) -> pb.RegisterAgentResponse:
        """Keep an agent's card from now on."""
        url = canonical_agent_url(request.agent_url)
        state = await self._keeper.register(url, request.agent_id, timeout=caller.timeout)
        return pb.RegisterAgentResponse(agent=self._agent(state))

    async def unregister_agent(self, request: pb.UnregisterAgentRequest, caller: Caller) -> pb.UnregisterAgentResponse:
        """Stop keeping an agent."""
        del caller
        event = await self._keeper.unregister(decode.agent_ref(request.agent))
        return pb.UnregisterAgentResponse(revision=encode.revision(Revision(self._epoch, event.sequence)))

    async def list_agents(self, request: pb.ListAgentsRequest, caller: Caller) -> pb.ListAgentsResponse:
        """List the agents by name."""
        del caller
        after = read_token(request.page_token, request)
        size = page_size(request.page_size, default=50, maximum=1000)
        rest = sorted((state for state in self._registry if state.record.id > after), key=lambda state: state.record.id)
        page = rest[:size]
        return pb.ListAgentsResponse(
            agents=[self._agent(state) for state in page],
            next_page_token=write_token(page[-1].record.id, request) if len(rest) > size else "",
            revision=encode.revision(self._registry.revisions.head),
        )

    async def get_agent(self, request: pb.GetAgentRequest, caller: Caller) -> pb.GetAgentResponse:
        """Return one agent."""
        del caller
        return pb.GetAgentResponse(agent=self._agent(self._keeper.lookup(decode.agent_ref(request.agent))))

    async def get_card(self, request: pb.GetCardRequest, caller: Caller) -> pb.GetCardResponse:
        """Return a card's document."""
        del caller
        state = self._keeper.lookup(decode.agent_ref(request.agent))
        stored, card = await self._card(state, request.digest)
        return pb.GetCardResponse(card=encode.card(stored, self._epoch, card.findings))

    async def refresh_agent(self, request: pb.RefreshAgentRequest, caller: Caller) -> pb.RefreshAgentResponse:
        """Fetch a card now."""
        state, changes = await self._keeper.refresh(decode.agent_ref(request.agent), timeout=caller.timeout)
        return pb.RefreshAgentResponse(agent=self._agent(state), changes=encode.change_set(changes))

    async def list_cards(self, request: pb.ListCardsRequest, caller: Caller) -> pb.ListCardsResponse:
        """List an agent's cards, newest first."""
        del caller
        state = self._keeper.lookup(decode.agent_ref(request.agent))
        size = page_size(request.page_size, default=20, maximum=100)
        before = int(read_token(request.page_token, request) or 0)
        cards = await self._registry.store.cards(state.record.id, before=before, limit=size + 1)
        page = cards[:size]
        return pb.ListCardsResponse(
            cards=[encode.card(stored, self._epoch) for stored in page],
            next_page_token=write_token(str(page[-1].sequence), request) if len(cards) > size else "",
        )

    async def diff_cards(self, request: pb.DiffCardsRequest, caller: Caller) -> pb.DiffCardsResponse:
        """Compare two cards of an agent."""
        del caller
        state = self._keeper.lookup(decode.agent_ref(request.agent))
        newer, new_card = await self._card(state, request.new_digest)
        if request.old_digest:
            old_card: Card | None = (await self._card(state, request.old_digest))[1]
        else:
            earlier = await self._registry.store.cards(state.record.id, before=newer.sequence, limit=1)
            old_card = (await self._card(state, earlier[0].card_digest))[1] if earlier else None
        return pb.DiffCardsResponse(changes=encode.change_set(compare(old_card, new_card)))

    async def list_drift_events(self, request: pb.ListDriftEventsRequest, caller: Caller) -> pb.ListDriftEventsResponse:
        """List drift events, newest first."""
        del caller
        agent_id = ""
        if request.HasField("agent"):
            ref = decode.agent_ref(request.agent)
            # A removed agent's events are still there, under its name.
            agent_id = ref.id or self._keeper.lookup(ref).record.id
        size = page_size(request.page_size, default=20, maximum=100)
        before = int(read_token(request.page_token, request) or 0)
        records = await self._registry.store.drift(agent_id, before=before, limit=size + 1)
        page = records[:size]
        return pb.ListDriftEventsResponse(
            drift_events=[encode.drift_event(record, self._epoch) for record in page],
            next_page_token=write_token(str(page[-1].number), request) if len(records) > size else "",
        )

    async def get_fleet_stats(self, request: pb.GetFleetStatsRequest, caller: Caller) -> pb.GetFleetStatsResponse:
        """Count."""
        del request, caller
        states = list(self._registry)
        return pb.GetFleetStatsResponse(
            revision=encode.revision(self._registry.revisions.head),
            agents=len(states),
            suspects=sum(state.record.suspicion is not None for state in states),
            fetches=self._statistics.fetches,
            changes=sum(state.record.change_count for state in states),
            silent_changes=sum(state.record.silent_change_count for state in states),
            judgements=self._statistics.judgements,
            streams=self._statistics.streams,
        )

    async def _card(self, state: AgentState, digest: str) -> tuple[StoredCard, Card]:
        """The stored document of a digest, or the current one, and its parsed view. Raises NotFound."""
        wanted = digest or state.record.card_digest
        stored = await self._registry.store.card(state.record.id, wanted) if wanted else None
        if stored is None:
            raise NotFound(
                f"{state.name} has no card {wanted}" if wanted else f"{state.name} has no card yet",
                reason="SNAPSHOT_UNKNOWN",
                resource=f"{state.name}/cards/{wanted}",
                agent=state.name,
                skill_fingerprint=wanted,
            )
        return stored, parse_card(stored.body, stored.card_url)

    def _agent(self, state: AgentState) -> agent_pb2.Agent:
        return encode.agent(state, self._epoch, self._clock.monotonic())

    @property
    def _epoch(self) -> str:
        return self._registry.revisions.epoch
