"""Any error, whatever it carries, fits into the trailers and says its reason."""

from google.rpc import error_details_pb2
from hypothesis import given
from hypothesis import strategies as st

from cardkeeper import errors
from cardkeeper.card.finding import Finding, Level
from cardkeeper.rpc.status import CODES, MAX_DETAILS, status_of
from cardkeeper.v1 import error_reason_pb2

TEXT = st.text(max_size=3000)
ANY_TEXT = st.text(alphabet=st.characters(), max_size=300) | st.just("\ud800") | TEXT
LISTS = st.lists(ANY_TEXT, max_size=50)
METADATA = st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=20)


@st.composite
def any_error(draw: st.DrawFn) -> errors.CardkeeperError:
    text, items, metadata = draw(ANY_TEXT), draw(LISTS), draw(METADATA)
    retry = draw(st.none() | st.floats(0, 1e6))
    findings = [Finding(id=item, pointer=item, message=item, level=Level.ERROR) for item in items]
    invalid = errors.InvalidInput(text, field=text)
    invalid.violations = tuple((item, item) for item in items)
    return draw(
        st.sampled_from(
            [
                errors.SkillNotAdvertised(text, near=items, advertised=items, agent=text),
                errors.NotOffered(text, offered=items, agent=text),
                errors.CardInvalid(text, findings=findings, metadata=metadata, retry_after=retry),
                errors.CardUnavailable(text, metadata=metadata, retry_after=retry),
                errors.NotFound(text, resource=text, agent=text),
                errors.Exhausted(text, reason="QUOTA_EXCEEDED", metadata=metadata, retry_after=retry),
                errors.Unavailable(text, metadata=metadata, retry_after=retry),
                invalid,
            ]
        )
    )


@given(any_error())
def test_details_fit_the_trailers_and_say_the_reason(error: errors.CardkeeperError) -> None:
    status = status_of(error)
    assert status.ByteSize() <= MAX_DETAILS
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.reason == f"ERROR_REASON_{error.reason}"
    assert info.domain == "cardkeeper.dev"
    assert len({detail.type_url for detail in status.details}) == len(status.details)


def test_every_reason_of_the_contract_has_a_code_and_the_other_way_round() -> None:
    reasons = {name.removeprefix("ERROR_REASON_") for name in error_reason_pb2.ErrorReason.keys()}  # noqa: SIM118
    assert set(CODES) == reasons - {"UNSPECIFIED"}
