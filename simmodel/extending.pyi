"""What packages beside simmodel may take: see docs/how_to/beside.md."""

from simmodel.commands.outputs import (
    PROGRESS as PROGRESS,
    QUIET as QUIET,
    answer as answer,
    document as document,
    files as files,
    fitted as fitted,
    log_name as log_name,
    page as page,
    picture as picture,
    plot as plot,
    table as table,
    write_and_say as write_and_say,
)
from simmodel.commands.shared import (
    LOG as LOG,
    MACHINE as MACHINE,
    READING as READING,
    RULES as RULES,
    SEED as SEED,
    TOO_LONG as TOO_LONG,
    TRUST as TRUST,
    WORKERS as WORKERS,
    chosen_platform as chosen_platform,
    process_pool as process_pool,
    run_options as run_options,
)
from simmodel.commands.values import (
    argument as argument,
    arguments as arguments,
    command as command,
    group as group,
    number as number,
    one_of as one_of,
    output as output,
    positive as positive,
    seconds as seconds,
    share as share,
    source as source,
    whole as whole,
)
from simmodel.environment import quiet_garbage_collector as quiet_garbage_collector
from simmodel.formats import tables as tables
from simmodel.formats.tables import csv_rows as csv_rows, zone as zone
from simmodel.foundation.display import (
    Cells as Cells,
    Fields as Fields,
    Shown as Shown,
    counted as counted,
    text_table as text_table,
)
from simmodel.foundation.entries import Entries as Entries
from simmodel.foundation.errors import (
    ImpossibleWork as ImpossibleWork,
    Plain as Plain,
    Stalled as Stalled,
    clipped as clipped,
    of_class as of_class,
    optional_imports as optional_imports,
    printable as printable,
    shown as shown,
    unknown as unknown,
)
from simmodel.foundation.loading import (
    check_count as check_count,
    decode as decode,
    in_memory as in_memory,
    parse_json as parse_json,
    parse_toml as parse_toml,
    read_bytes as read_bytes,
    read_lines as read_lines,
)
from simmodel.foundation.serving import HOST as HOST, LocalServer as LocalServer
from simmodel.foundation.units import parse_quantity as parse_quantity
from simmodel.foundation.workers import worker_pool as worker_pool
from simmodel.foundation.writing import check_output as check_output, write_text as write_text
from simmodel.futures.asking import Question as Question
from simmodel.futures.executors import stop_workers as stop_workers
from simmodel.futures.start_times import FutureMissed as FutureMissed, LightFutures as LightFutures
from simmodel.metrics.differences import (
    Difference as Difference,
    Source as Source,
    compared as compared,
    difference_table as difference_table,
)
from simmodel.metrics.report import duration as duration, metric_text as metric_text
from simmodel.platform.node_lists import node_list as node_list, node_names as node_names
from simmodel.platform.overlaps import check_overlaps as check_overlaps
from simmodel.platform.strict import inside as inside, made_from as made_from, strict_converter as strict_converter
from simmodel.platform.toml import check_models as check_models, to_toml as to_toml
from simmodel.predictors.learning import learn_from as learn_from
from simmodel.records.observers import Bar as Bar, progress_bar as progress_bar
from simmodel.referee.explanation import (
    PROMISES as PROMISES,
    Change as Change,
    Explanation as Explanation,
    instant_text as instant_text,
    span_table as span_table,
)
from simmodel.referee.following import Departure as Departure, Follower as Follower
from simmodel.referee.obstacles import waiting_parts as waiting_parts
from simmodel.referee.verification import cluster_of as cluster_of, why as why
from simmodel.resources.pools.allocation import (
    AWAY as AWAY,
    Allocation as Allocation,
    NodeTable as NodeTable,
    Request as Request,
    assigned as assigned,
)
from simmodel.results.stores import json_text as json_text
from simmodel.runs.live import Audience as Audience, PageHandler as PageHandler
from simmodel.runs.scenario import GivenPlatform as GivenPlatform
from simmodel.scheduling.registry import PolicyLike as PolicyLike, label as label
from simmodel.snapshots.jobs import (
    Past as Past,
    RunningWork as RunningWork,
    WorkState as WorkState,
    just_after as just_after,
)
from simmodel.snapshots.snapshot import check_policy_name as check_policy_name
from simmodel.systems.cluster.mirrored import MirroredExecution as MirroredExecution
from simmodel.systems.policy_state import policy_state as policy_state, stream_states as stream_states
from simmodel.systems.submissions import GivenWork as GivenWork, read_workload as read_workload
from simmodel.view.page.document import Page as Page
from simmodel.view.page.results import expected_page as expected_page
from simmodel.view.portfolio_plots import replay_page as replay_page
from simmodel.view.referee_plots import departures as departures
from simmodel.view.style import Size as Size
from simmodel.work.job import OVER as OVER, partitions_in as partitions_in
from simmodel.work.live_job import Booting as Booting
from simmodel.work.node_chunks import chunk_text as chunk_text
from simmodel.work.prepare import Prepared as Prepared, prepare as prepare
from simmodel.work.resampling import resampling_doubts as resampling_doubts
from simmodel.work.time_limits import TooLong as TooLong
