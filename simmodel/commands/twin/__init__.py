"""Follow a scheduler, foretell what it will do, and advise; act within limits if the configuration says so."""

__all__ = ["EXAMPLES"]

EXAMPLES = ("simmodel twin replay schedtwin --plot replay.png",)
