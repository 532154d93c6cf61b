"""What all tests share."""

from hypothesis import settings

# A loaded machine is slow, not wrong; hypothesis's own profile for continuous integration says so too.
settings.register_profile("patient", settings.default, deadline=None)
if settings.get_current_profile_name() == "default":
    settings.load_profile("patient")
