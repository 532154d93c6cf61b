from .explaining import explain as explain
from .identification import identify as identify
from .obstacles import why_waits as why_waits
from .verification import verify as verify
