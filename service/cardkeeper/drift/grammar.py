"""How languages say that something is refused: words of a language, put together in four word orders.

* before:  "unknown skill X", "未知技能 X"
* after:   "skill X not found", "compétence introuvable", "技能不存在"
* lacks:   "does not support skill X", "找不到技能 X"
* subject: "X is no longer available" (only where the thing itself is named)

A fifth form, alone, knows no order: a whole sentence in which nothing else is said.

What keeps look-alikes out is the word after: a refusal either names the negotiated skill there, or nothing. "Unknown
skill: other" names another one; "unknown skill level" is about something else.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cardkeeper.drift.phrase import SKILL, WEAK_SKILL

_LEAD = r"(?:[:=#(\[<>,–—-]{1,2} ?)?"
_CALLED = (
    r"(?:match(?:es)? )?"
    r"(?:(?:with |of |matching |by |for )?(?:the )?(?:id|name|identifier|key|named|called|matching|for)[:= ]{1,2})?"
)

NAMED = rf" ?{_LEAD}{_CALLED}'?[{SKILL}{WEAK_SKILL}]'?[)\]>]?"
"""The negotiated skill, after the word for it."""

_THEN = r"(?: ?(?:[:,-]|→|->|=>) ?)(?:(?:which|that|it|status|state|error|code|reason)[: ]{1,2})?(?:404:? )?"
"""What may stand between a name and its predicate, beside a space."""

_FORMATS = "markdown|plain ?text|json|html|csv|pdf|png|jpe?g|svg|xml|yaml|mp3|wav|mp4"
TYPE = (
    r"'?(?:(?:text|image|audio|video|application|model|font|multipart|message)/[a-z0-9*](?:[a-z0-9.+*-]{0,80}[a-z0-9*])?"
    rf"(?:; ?[a-z0-9=_-]{{1,40}})?|\b(?:{_FORMATS})\b)'?"
)
"""A media type, or a format by its everyday name."""

_TYPES = rf"{TYPE}(?:(?:, ?| and | or | und | oder | et | ou | y | o | e |、|和|或){TYPE}){{0,4}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What one language uses for refusals: alternations, as regular expressions over plain sentences."""

    code: str
    """BCP 47."""
    spaced: bool
    """Words are set apart by spaces."""
    unknown: str
    """Adjectives: "unknown", "unsupported"."""
    joined: str
    """Words that join two of `unknown`: "unknown or unsupported"."""
    auxiliary: str
    determiner: str
    qualifier: str
    """May stand after the noun: "requested", "you asked for"."""
    refused: str
    """Predicates that end the thought: "not found", "does not exist"."""
    gone: str
    """Predicates that may go on in any way: "has been replaced by …"."""
    lacks: str
    lacks_named: str
    """Like `lacks`, in words so common that they count only where the negotiated skill is named."""
    go_on: str
    """How a sentence may go on after a refusal that names nothing."""
    limits: str
    """How a sentence goes on that refuses under some condition only: "for this language", "during maintenance"."""
    attribute: str
    """What belongs to a skill and is no skill: "unknown skill X parameter"."""
    failure: str
    """What may be unknown without being refused: "X: unknown error"."""
    nouns: Mapping[str, str]
    """By subject: "skill", "skills", "thing" (what else a skill may be called), "mode", "content", "streaming", "push",
    "card"."""
    denial: str = ""
    """Words that deny, for sentences that say nothing but a refusal; none: the language has no such form."""
    neutral: str = ""
    """Words that such a sentence may have besides."""
    of_modes: str = ""
    """Words that it may have besides where it is about a mode."""
    yields: str = ""
    """Verbs of modes, of which it must have one: "invalid JSON" is about something else."""
    does: str = ""
    """How it goes on where the skill was at work: "the skill could not find it"."""

    @property
    def gap(self) -> str:
        """What stands between two words."""
        return " " if self.spaced else " ?"

    @property
    def bound(self) -> str:
        """Where a word starts."""
        return r"\b" if self.spaced else ""

    def noun(self, subject: str) -> str:
        """The word for a subject; what matches nothing where the language has none."""
        return self.nouns.get(subject, "(?!)")

    @property
    def ends(self) -> str:
        """What follows a refusal that names nothing: the end, a pause, or words that lead away from a name."""
        return (
            r"(?=(?: error| exception)?(?: ?$|'(?!\w)| ?[,;!?)\]}…]| ?\.(?!\w)| ?[-–—:] ?"
            rf"{self.go_on}| ?[(\[] ?(?:-?\d|{self.go_on})|{self.gap}{self.go_on}))"
        )

    @property
    def helped(self) -> str:
        """Auxiliary verbs and adverbs before a predicate."""
        return rf"(?:{self.auxiliary}{self.gap}){{0,6}}"

    @property
    def determined(self) -> str:
        """Articles and the like before a noun."""
        return rf"(?:{self.determiner}{self.gap}){{0,3}}"

    @property
    def adjective(self) -> str:
        """One or two words for "unknown", up to the noun."""
        return rf"{self.bound}{self.unknown}(?:{self.gap}{self.joined}{self.gap}{self.unknown})?{self.gap}{self.determined}"

    def predicate(self, ends: str) -> str:
        """A refusing predicate with what may follow it."""
        whole = rf"(?!{self.gap}{self.limits})"
        refused = rf"(?:{self.refused}|{self.unknown}(?!{self.gap}{self.failure}))"
        return rf"{self.helped}(?:{self.gone}{whole}|{refused}{whole}{ends})"


def alone_forms(words: Words) -> dict[str, str]:
    """Return the patterns for whole sentences that name a subject, deny, and have no other word.

    In any order of words: such a sentence can be about nothing else. "Lookup of skill X: no match".
    """
    if not words.denial:
        return {}
    between = rf"[^\w{SKILL}{WEAK_SKILL}]*"
    skill = rf"(?:{SKILL}|\b(?:{words.noun('skill')}|{words.noun('skills')})\b)"
    other = rf"(?!.*\b{words.unknown} {words.failure})"
    mode = r"\b(?:text|image|audio|video|application)/[a-z0-9.+*-]{1,80}"

    def whole(subject: str, others: str, also: str) -> str:
        word = rf"(?:{subject}|(?:{words.denial}|{words.neutral}|{others})(?![\w-]))"
        denied = rf"(?=.*\b{words.denial}(?![\w-]))"
        return rf"^(?=.*{subject}){denied}{also}(?>{between}{word})+{between}$"

    return {
        "skill.alone": whole(
            rf"(?:{skill}|{WEAK_SKILL})", "(?!)", rf"(?=.*{skill})(?!.*{skill}'?[)\]]? {words.does}){other}"
        ),
        "mode.alone": whole(rf"(?:{mode}|\b{words.noun('mode')}\b)", words.of_modes, rf"(?=.*\b{words.yields}\b)"),
    }


def skill_forms(words: Words) -> dict[str, str]:
    """Return the patterns for a refused skill, by word order."""
    gap, bound, ends = words.gap, words.bound, words.ends
    qualified = rf"(?:{gap}{words.qualifier})?"
    skill, thing = words.noun("skill") + qualified, words.noun("thing")
    any_skill = rf"(?:{words.noun('skill')}|{words.noun('skills')}){qualified}"
    named = rf"(?:{NAMED}(?!(?:'s)?{gap}{words.attribute}))"
    whole = rf"(?!{gap}{words.limits})"
    start = (
        rf"(?:^|[^\w\s{SKILL}{WEAK_SKILL}] ?|\b(?:error|code|reason) |\b{words.determiner}{gap})"
        if words.spaced
        else ""
    )
    subject = (
        ""
        if not words.spaced
        else rf"(?:^|[:;,(.)\]] ?|{bound}(?:{any_skill}|{thing}|{words.determiner}|agent|error){gap})"
    )
    return {
        "before": rf"{words.adjective}(?:{any_skill}(?: error)?{named}|{skill}{ends}|{thing}(?: error)?{named})",
        "after": (
            rf"(?:{bound}(?:{any_skill}|{thing}){NAMED}(?:{gap}(?:which |that )?|{_THEN}){words.predicate(ends)}"
            rf"|{start}{skill}:?{gap}{words.predicate(ends)}"
            rf"|{bound}(?:{any_skill}|{thing}):?{gap}{words.helped}"
            rf"(?:{words.refused}|{words.unknown}|{words.gone})(?: error| exception)?{named})"
        ),
        "lacks": (
            rf"{bound}(?:{words.lacks}{gap}{words.determined}"
            rf"(?:{skill}{ends}|{any_skill}{named}{whole}|{thing}{named}{whole}|'?{SKILL}'?{whole})"
            rf"|{words.lacks_named}{gap}{words.determined}"
            rf"(?:(?:{any_skill}|{thing}){named}|'?[{SKILL}{WEAK_SKILL}]'?{gap}{skill}){whole})"
        ),
        "subject": rf"{subject}'?{SKILL}'?(?:{gap}{skill})?(?:{gap}|{_THEN}){words.predicate(ends)}",
    }


def mode_forms(words: Words) -> dict[str, str]:
    """Return the patterns for a refused mode. The type may be named or not; which one is judged elsewhere."""
    gap, bound = words.gap, words.bound
    noun = rf"{words.noun('mode')}(?:{gap}{words.qualifier})?"
    content = rf"(?:{gap}(?:{noun}|{words.noun('content')}))?"
    typed = rf" ?{_LEAD}{_TYPES}[)\]>]?"
    ends = rf"(?:{typed}|{words.ends})"
    return {
        "before": rf"{words.adjective}(?:(?:{TYPE}{gap})?{noun}{ends}|{words.noun('content')}{typed})",
        "after": rf"{bound}{noun}(?:{typed})?(?:{gap}| ?[:,] ?){words.predicate(ends)}",
        "lacks": rf"{bound}{words.lacks}{gap}{words.determined}(?:{noun}{ends}|{_TYPES}{content}{words.ends})",
        "subject": (
            rf"(?:^|[:;,(.] ?|{bound}{words.determiner}{gap}){_TYPES}{content}(?:{gap}|{_THEN}){words.predicate(words.ends)}"
        ),
    }


def capability_forms(words: Words, subject: str) -> dict[str, str]:
    """Return the patterns for a refused capability: "streaming", "push" or "card"."""
    noun = words.noun(subject)
    return {
        "before": rf"{words.adjective}{noun}{words.ends}",
        "after": rf"{words.bound}{noun}:?{words.gap}{words.predicate(words.ends)}",
        "lacks": (
            rf"{words.bound}(?:{words.lacks}|{words.lacks_named}){words.gap}{words.determined}{noun}{words.ends}"
        ),
    }


def refusal_forms(words: Words) -> dict[str, str]:
    """Return every pattern of a language by the last parts of its id: "skill.before", "mode.after", and so on."""
    forms: dict[str, str] = {}
    if "skill" in words.nouns:
        forms |= {f"skill.{order}": source for order, source in skill_forms(words).items()}
    if "mode" in words.nouns:
        forms |= {f"mode.{order}": source for order, source in mode_forms(words).items()}
    for subject in ("streaming", "push", "card"):
        if subject in words.nouns:
            forms |= {f"{subject}.{order}": source for order, source in capability_forms(words, subject).items()}
    return forms | alone_forms(words)
