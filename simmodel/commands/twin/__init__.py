"""Follow a scheduler, foretell what it will do, and advise; nothing is changed there."""

__all__ = ["EXAMPLES"]

EXAMPLES = ("simmodel twin replay schedtwin --plot replay.png",)
