"""Settings of hypothesis: the first example of a test may compile a kernel, so there is no deadline."""

from hypothesis import settings

settings.register_profile("compiled", deadline=None)
settings.load_profile("compiled")
