from .advisor import Advice as Advice, Advisor as Advisor
from .audit import AuditLog as AuditLog, read_audit as read_audit
from .audit_replay import replay_audit as replay_audit
from .config import TwinConfig as TwinConfig, read_config as read_config
from .events import (
    Changed as Changed,
    Demand as Demand,
    Ended as Ended,
    Event as Event,
    JobReport as JobReport,
    NodesChanged as NodesChanged,
    OnHold as OnHold,
    Released as Released,
    Requeued as Requeued,
    Started as Started,
    StateReport as StateReport,
    Submitted as Submitted,
)
from .logs import start_logging as start_logging
from .mirror.mirror import Mirror as Mirror
from .mirror.present_state import explain_in_mirror as explain_in_mirror
from .pbs.describe import describe_pbs as describe_pbs
from .replay import replay_log as replay_log
from .serving import StatusServer as StatusServer
from .shadow import Shadow as Shadow, shadow_of as shadow_of
from .slurm.describe import describe_slurm as describe_slurm
from .sources import AnsweringSource as AnsweringSource, Source as Source
from .status import LastDecision as LastDecision, Status as Status
from .streams import RedisSettings as RedisSettings, StreamWriter as StreamWriter
from .twin import Twin as Twin
