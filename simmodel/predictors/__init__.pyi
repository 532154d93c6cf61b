from .boosted import Boosted as Boosted
from .learning import Learning as Learning, learn_from as learn_from
from .recent import RecentTwo as RecentTwo, Request as Request
from .similar import OwnPast as OwnPast, SimilarJobs as SimilarJobs
