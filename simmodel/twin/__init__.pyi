from .events import (
    Changed as Changed,
    Ended as Ended,
    Event as Event,
    Held as Held,
    JobEvent as JobEvent,
    JobReport as JobReport,
    NodesChanged as NodesChanged,
    Noticed as Noticed,
    Passed as Passed,
    Released as Released,
    Request as Request,
    Requeued as Requeued,
    Started as Started,
    StateReport as StateReport,
    Submitted as Submitted,
    event_of as event_of,
)
from .mirror import Mirror as Mirror
from .source import Source as Source
