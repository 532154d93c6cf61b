from .bundled import bundled_names as bundled_names
from .formats import Format as Format, load_workflow as load_workflow
from .platforms import load_platform as load_platform
from .tasks import load_tasks as load_tasks
from .workloads import load_workload as load_workload
