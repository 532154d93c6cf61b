"""Follow a scheduler, forecast its decisions, and advise; act within limits if the configuration says so."""

__all__ = ["EXAMPLES"]

EXAMPLES = ("simmodel twin replay schedtwin --plot replay.png",)
