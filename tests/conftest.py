"""Settings for the whole suite: one hypothesis profile that does not depend on the speed of the machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "icefloe",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", parent=settings.get_profile("icefloe"), max_examples=1000, derandomize=False)
settings.load_profile("icefloe")
