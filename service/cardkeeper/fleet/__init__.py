"""The keeper of all agents: freshness, single flight, evidence, revisions, fan-out."""
