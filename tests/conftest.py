"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A machine that is busy with other tests is slow, and not wrong: no deadline an example, and none for making it.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name no test after bytes: gzip's hold the second they were made in, and every worker must find the same names."""
    return argname if isinstance(val, bytes) else None
