from .batsim import (
    BatsimRun as BatsimRun,
    read_batsim as read_batsim,
    read_batsim_run as read_batsim_run,
    write_batsim_jobs as write_batsim_jobs,
)
from .cgsim import (
    CGSimSites as CGSimSites,
    CGSimStudy as CGSimStudy,
    read_cgsim as read_cgsim,
    read_cgsim_queues as read_cgsim_queues,
)
from .cgsim_jobs import read_cgsim_jobs as read_cgsim_jobs
from .daggen import read_daggen as read_daggen, write_daggen as write_daggen
from .dax import read_dax as read_dax
from .gwf import read_gwf as read_gwf
from .hetsim import read_hetsim as read_hetsim, write_hetsim as write_hetsim
from .hetsim_config import HetSimConfig as HetSimConfig, read_hetsim_config as read_hetsim_config
from .named_columns import read_columns as read_columns
from .openb import read_openb as read_openb, read_openb_nodes as read_openb_nodes
from .pbs import read_pbs as read_pbs
from .sacct import read_sacct as read_sacct
from .schedules import read_schedule as read_schedule
from .simgrid import (
    SimGridHost as SimGridHost,
    SimGridPlatform as SimGridPlatform,
    read_simgrid as read_simgrid,
)
from .sst import (
    SSTScenario as SSTScenario,
    machine_for as machine_for,
    read_sst as read_sst,
    read_sst_scenario as read_sst_scenario,
)
from .swf import read_swf as read_swf, write_swf as write_swf
from .training import (
    read_gavel as read_gavel,
    read_helios as read_helios,
    read_philly as read_philly,
    read_tiresias as read_tiresias,
)
from .wfformat import read_wfformat as read_wfformat, write_wfformat as write_wfformat
