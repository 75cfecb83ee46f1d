"""One Hypothesis profile for the kernels: the time of an example says nothing about a kernel."""

from hypothesis import settings

settings.register_profile("kernels", deadline=None)
settings.load_profile("kernels")
