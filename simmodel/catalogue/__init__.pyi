from .bundled import bundled_file as bundled_file, bundled_folder as bundled_folder, bundled_names as bundled_names
from .formats import FORMATS as FORMATS, WORKFLOW_FORMATS as WORKFLOW_FORMATS, Format as Format
from .platforms import load_platform as load_platform, platform_names as platform_names
from .tasks import load_tasks as load_tasks, make_work as make_work, task_names as task_names
from .workflows import load_workflow as load_workflow
from .workloads import load_workload as load_workload, workload_in_chunks as workload_in_chunks
