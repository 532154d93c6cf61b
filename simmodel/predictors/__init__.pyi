from .learning import Learning as Learning
from .recent import RecentTwo as RecentTwo, Request as Request
from .similar import OwnPast as OwnPast, SimilarJobs as SimilarJobs
