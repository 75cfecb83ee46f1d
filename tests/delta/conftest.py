"""One Hypothesis profile for the format: the time of an example says nothing about a codec."""

from hypothesis import settings

settings.register_profile("delta", deadline=None)
settings.load_profile("delta")
