"""The skill fingerprint of a parsed document, against the reference function: json.dumps and SHA-256."""

import hashlib
import json
import statistics
import timeit
from functools import partial
from typing import Any

from processes import card

from cardkeeper.card.fingerprint import fingerprint_document

ROUNDS = 15


def reference(document: dict[str, Any]) -> str:
    """The original function, with the effective modes that design section 4 added."""
    capabilities = document.get("capabilities") or {}
    skills = []
    for skill in document.get("skills") or []:
        inputs = skill.get("inputModes") or document.get("defaultInputModes") or []
        outputs = skill.get("outputModes") or document.get("defaultOutputModes") or []
        skills.append({"id": skill.get("id", ""), "inputModes": sorted(inputs), "outputModes": sorted(outputs)})
    surface = {
        "skills": sorted(skills, key=lambda skill: (skill["id"], skill["inputModes"], skill["outputModes"])),
        "streaming": capabilities.get("streaming") is True,
        "pushNotifications": capabilities.get("pushNotifications") is True,
    }
    return hashlib.sha256(json.dumps(surface, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def measure() -> dict[str, float]:
    """Return times in microseconds, and their ratio, for cards of 3 and of 20 skills."""
    result = {}
    for skills in (3, 20):
        document = card(skills)
        if reference(document) != fingerprint_document(document):
            raise RuntimeError("the two fingerprints differ")
        ours, floor = [], []
        for _ in range(ROUNDS):
            floor.append(timeit.timeit(partial(reference, document), number=2000) / 2000)
            ours.append(timeit.timeit(partial(fingerprint_document, document), number=2000) / 2000)
        suffix = "" if skills == 20 else f"_{skills}_skills"
        result[f"fingerprint_microseconds{suffix}"] = statistics.median(ours) * 1e6
        result[f"fingerprint_reference_microseconds{suffix}"] = statistics.median(floor) * 1e6
        result[f"fingerprint_time_ratio{suffix}"] = statistics.median(
            mine / bare for mine, bare in zip(ours, floor, strict=True)
        )
    return result
