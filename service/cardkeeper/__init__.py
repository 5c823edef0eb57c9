"""Cardkeeper: the discovery service of an A2A fleet.

Read from the ground up: `card` (what a card says), `drift` (what contradicts it), `fetch` and `store` (where cards come
from and are kept), `fleet` (the keeper of all agents), `rpc` (the contract over gRPC), `app` (assembly), `cli`.
"""

__version__ = "0.1.0"
