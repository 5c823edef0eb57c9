"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A machine that is busy with other tests is slow, and not wrong: no deadline an example, and none for making it.
settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")
