from .display import WIDTH as WIDTH
from .errors import (
    ByName as ByName,
    ImpossibleWork as ImpossibleWork,
    InputError as InputError,
    PolicyError as PolicyError,
    SimmodelError as SimmodelError,
    SnapshotError as SnapshotError,
    Stalled as Stalled,
)
from .loading import Source as Source, limits as limits, read_lines as read_lines, reading as reading
from .tracebacks import shortened as shortened
