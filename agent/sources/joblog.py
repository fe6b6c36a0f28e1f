"""Job logs in files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from agent.collectors.joblog import JobLogOptions
from agent.host import Host
from agent.options import option
from agent.sources.base import Source, SourceSetup
from agent.sources.log_files import LogFiles


def _names_a_job(key: str, pattern: str) -> str:
    try:
        names = "job" in re.compile(pattern).groupindex
    except re.error:
        names = False
    return "" if names else f"{key} must be a regular expression with a group (?P<job>...)"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLogSourceOptions:
    """What an operator can set."""

    job_logs: tuple[str, ...] = option(
        (), "glob patterns of job logs to follow; empty: none", example=("/var/log/jobs/*.out",)
    )
    job_id_pattern: str = option(
        r"(?P<job>\d+)[^/]*$",
        "regular expression searched in a job log's path; its group `job` is the job id (default: the first number of the "
        "file's name)",
        example=r"slurm-(?P<job>\d+)\.out",
        check=_names_a_job,
    )


class JobLogSource(LogFiles, Source):
    """Emits JobLine and Checkpoint; see LogFiles."""

    name: ClassVar[str] = "joblog"
    needs: ClassVar[str] = "read access to the job log files that the config names"
    options: ClassVar[tuple[type[Any], ...]] = (JobLogSourceOptions,)

    def __init__(
        self,
        host: Host,
        options: JobLogSourceOptions,
        *,
        markers: tuple[str, ...] = (),
        checkpoints: Mapping[str, str] | None = None,
        poll_s: float = 0.5,
    ) -> None:
        super().__init__(
            host,
            name=self.name,
            globs=options.job_logs,
            job_pattern=options.job_id_pattern,
            markers=markers,
            checkpoints=checkpoints,
            poll_s=poll_s,
        )

    @classmethod
    def of(cls, setup: SourceSetup) -> Self | None:
        """None where no file is named."""
        options = setup.options(JobLogSourceOptions)
        if not options.job_logs:
            return None
        markers = setup.options(JobLogOptions).markers
        return cls(setup.host, options, markers=markers, checkpoints=setup.checkpoints(f"{cls.name} "))
