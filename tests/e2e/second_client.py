"""A subscribed client in a process of its own: says what it holds, waits for the push, and says what it answers then."""

import json
import sys
import time

from cardkeeper_client import Cardkeeper, SkillRefusedError

target, agent_url, skill_id = sys.argv[1:]
with Cardkeeper(target) as cards:
    cards.wait_until_in_sync(10)
    held = cards.resolve(agent_url, skill_id)
    print(json.dumps({"held": cards.resolve(agent_url, skill_id) is held}), flush=True)
    until = time.monotonic() + 15
    dropped = False
    while time.monotonic() < until and not dropped:
        # The near cache itself, not `resolve`: a question to the service would be no push.
        dropped = cards.in_sync and not cards._cache.answers
        time.sleep(0.005)
    refused, old = "", 0
    for _ in range(50):
        try:
            old += cards.resolve(agent_url, skill_id).skill_fingerprint == held.skill_fingerprint
        except SkillRefusedError as error:
            refused = error.reason
    print(json.dumps({"dropped_by_push": dropped, "refused": refused, "old_answers_afterwards": old}), flush=True)
