from .learning import Learning as Learning
from .similar import SimilarJobs as SimilarJobs
