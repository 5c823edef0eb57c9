"""What a task ends with is told to whoever waits for it; only what nobody foresaw is logged as a crash."""

import logging

import pytest

from cardkeeper.fleet.task_scope import TaskScope


class Refused(Exception):
    """What the one who waits can take."""


async def refuse() -> None:
    raise Refused("not now")


async def test_an_expected_error_reaches_its_waiter_and_is_no_crash(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(Refused):
        await TaskScope().start(refuse(), "commit", expected=(Refused,))
    assert caplog.records == []


async def test_any_other_error_is_logged_as_the_defect_that_it_is(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(Refused):
        await TaskScope().start(refuse(), "commit")
    assert [record.getMessage() for record in caplog.records] == ["task commit crashed"]
