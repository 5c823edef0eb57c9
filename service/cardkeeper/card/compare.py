"""What changed between two cards of one agent, classed and weighed (design section 4). Pure.

Modes are compared by what they cover: `text/plain` beside `*/*` adds nothing, `text` and `text/plain` are the same. A
surface change that is none by that measure is still listed, as a change of spelling.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from cardkeeper.card.change import Change, ChangeKind, ChangeSet, Severity
from cardkeeper.card.media_type import Modes
from cardkeeper.card.model import Card, Skill
from cardkeeper.card.remarks import pointer_token

_SHOWN = 200
"""Characters of before and after."""


def compare(old: Card | None, new: Card | None) -> ChangeSet:
    """Return the difference; None stands for "no card held" (old) or "the agent is gone" (new)."""
    changes = list(_skills(old, new))
    if old is not None and new is not None and old.card_digest != new.card_digest:
        changes += chain(_flags(old, new), _whole(old, new), _extensions(old, new))
        if not changes:
            changes.append(Change(kind=ChangeKind.OTHER_CHANGED, severity=Severity.COSMETIC))
    return ChangeSet(
        previous_skill_fingerprint=old.skill_fingerprint if old else "",
        skill_fingerprint=new.skill_fingerprint if new else "",
        changes=tuple(sorted(changes, key=_gravest_first)),
        version_changed=old is not None and new is not None and old.version != new.version,
    )


def _gravest_first(change: Change) -> tuple[int, str, str, str]:
    return (-change.severity, change.kind, change.skill_id, change.pointer)


def _skills(old: Card | None, new: Card | None) -> Iterator[Change]:
    before, after = _by_id(old), _by_id(new)
    for skill_id in sorted({*before, *after}):
        mine, theirs = before.get(skill_id, []), after.get(skill_id, [])
        if not theirs:
            yield _change(ChangeKind.SKILL_REMOVED, Severity.BREAKING, skill_id, "", _name(mine[0]), "")
        elif not mine:
            yield _change(ChangeKind.SKILL_ADDED, Severity.COMPATIBLE, skill_id, "", "", _name(theirs[0]))
        else:
            yield from _one_skill(skill_id, mine, theirs)


def _by_id(card: Card | None) -> dict[str, list[Skill]]:
    """Skills by id. Where several share one, they are compared as one that offers what any of them does."""
    found: dict[str, list[Skill]] = {}
    for skill in card.skills if card else ():
        found.setdefault(skill.id, []).append(skill)
    return found


def _one_skill(skill_id: str, old: list[Skill], new: list[Skill]) -> Iterator[Change]:
    surface_changed = sorted(skill.fingerprint for skill in old) != sorted(skill.fingerprint for skill in new)
    classed = False
    for member, modes in (("inputModes", _inputs), ("outputModes", _outputs)):
        before, after = modes(old), modes(new)
        for kind, severity, lacking in (
            (ChangeKind.SKILL_NARROWED, Severity.BREAKING, _uncovered(before, after)),
            (ChangeKind.SKILL_WIDENED, Severity.COMPATIBLE, _uncovered(after, before)),
        ):
            if lacking:
                classed = True
                yield _change(kind, severity, skill_id, member, ", ".join(before), ", ".join(after))
    if surface_changed and not classed:
        yield _change(ChangeKind.OTHER_CHANGED, Severity.COSMETIC, skill_id, "modes", _spelled(old), _spelled(new))
    if [skill.description_digest for skill in old] != [skill.description_digest for skill in new]:
        yield _change(
            ChangeKind.SKILL_REDESCRIBED, Severity.COSMETIC, skill_id, "description", _wording(old), _wording(new)
        )
    if [skill.output_schema for skill in old] != [skill.output_schema for skill in new]:
        yield _change(ChangeKind.OTHER_CHANGED, Severity.BREAKING, skill_id, "outputSchema", "", "")


def _inputs(skills: list[Skill]) -> list[str]:
    return sorted({mode for skill in skills for mode in skill.input_modes})


def _outputs(skills: list[Skill]) -> list[str]:
    return sorted({mode for skill in skills for mode in skill.output_modes})


def _uncovered(modes: Iterable[str], offered: list[str]) -> list[str]:
    covered = Modes(offered)
    return [mode for mode in modes if not covered.cover(mode)]


def _spelled(skills: list[Skill]) -> str:
    return "; ".join(f"{', '.join(skill.input_modes)} -> {', '.join(skill.output_modes)}" for skill in skills)


def _wording(skills: list[Skill]) -> str:
    return skills[0].description or skills[0].name


def _name(skill: Skill) -> str:
    return skill.name or skill.id


def _flags(old: Card, new: Card) -> Iterator[Change]:
    flags: tuple[tuple[str, Callable[[Card], bool]], ...] = (
        ("streaming", lambda card: card.streaming),
        ("pushNotifications", lambda card: card.push_notifications),
        ("extendedAgentCard", lambda card: card.extended_card),
    )
    for name, of in flags:
        if of(old) != of(new):
            lost = of(old)
            yield Change(
                kind=ChangeKind.CAPABILITY_LOST if lost else ChangeKind.CAPABILITY_GAINED,
                severity=Severity.BREAKING if lost else Severity.COMPATIBLE,
                pointer=f"/capabilities/{name}",
                before=str(of(old)).lower(),
                after=str(of(new)).lower(),
            )


def _whole(old: Card, new: Card) -> Iterator[Change]:
    if old.interface_digest != new.interface_digest:
        yield Change(
            kind=ChangeKind.ENDPOINT_CHANGED,
            severity=Severity.BREAKING,
            pointer="/supportedInterfaces",
            before=_endpoints(old),
            after=_endpoints(new),
        )
    if old.security_digest != new.security_digest:
        yield Change(kind=ChangeKind.SECURITY_CHANGED, severity=Severity.BREAKING, pointer="/securitySchemes")
    if old.signature_digest != new.signature_digest:
        yield Change(
            kind=ChangeKind.SIGNATURE_CHANGED,
            severity=Severity.COMPATIBLE,
            pointer="/signatures",
            before="signed" if old.signature_digest else "",
            after="signed" if new.signature_digest else "",
        )
    if old.version != new.version:
        yield Change(
            kind=ChangeKind.VERSION_CHANGED,
            severity=Severity.COSMETIC,
            pointer="/version",
            before=old.version[:_SHOWN],
            after=new.version[:_SHOWN],
        )


def _endpoints(card: Card) -> str:
    return ", ".join(f"{item.binding} {item.url}" for item in card.interfaces)[:_SHOWN]


def _extensions(old: Card, new: Card) -> Iterator[Change]:
    before = {item.uri: item.required for item in old.extensions}
    after = {item.uri: item.required for item in new.extensions}
    for uri in sorted({*before, *after}):
        was, now = before.get(uri), after.get(uri)
        if was == now:
            continue
        yield Change(
            kind=ChangeKind.EXTENSION_CHANGED,
            # One that is demanded from now on, or gone, ends what worked; one more to choose from does not.
            severity=Severity.BREAKING if now or now is None else Severity.COMPATIBLE,
            pointer=f"/capabilities/extensions/{pointer_token(uri)}"[:_SHOWN],
            before=_offered(was),
            after=_offered(now),
        )


def _offered(required: bool | None) -> str:
    return {None: "", True: "required", False: "offered"}[required]


def _change(kind: ChangeKind, severity: Severity, skill_id: str, member: str, before: str, after: str) -> Change:
    pointer = f"/skills/{pointer_token(skill_id)}" + (f"/{member}" if member else "")
    return Change(
        kind=kind,
        severity=severity,
        skill_id=skill_id,
        pointer=pointer,
        before=before[:_SHOWN],
        after=after[:_SHOWN],
    )
