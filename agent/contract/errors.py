"""Errors by who must act.

GpuwardError
├── ConfigError      the operator must correct something: refuse to start, name file, line and key
├── ContractError    version skew between agent and brain: count, skip, page once
├── ActionError      an action did not achieve what it should
│   ├── Refused      the device refuses: next rung, no retry
│   ├── Unreachable  the counterpart could not be reached: retry within the deadline
│   ├── Transient    the counterpart answers that it fails just now: retry within the deadline
│   └── TimedOut     the outcome is unknown: verify before anything else
└── BugError         an invariant of ours is broken: stop acting, keep recording, page
"""


class GpuwardError(Exception):
    """Every error that gpuward raises on purpose."""


class ConfigError(GpuwardError):
    """The operator must correct a file or an option; the message names it."""


class ContractError(GpuwardError):
    """A message that does not fit the contract of this version."""


class ActionError(GpuwardError):
    """An action failed: it ran and did not achieve what it should."""


class Refused(ActionError):
    """The device, the node or its allow-list refuses. Another attempt will not help."""


class Unreachable(ActionError):
    """The counterpart could not be reached; nothing was done."""


class Transient(ActionError):
    """The counterpart answered that it fails just now, with its words; nothing was done."""


class TimedOut(ActionError):
    """No answer within the deadline: it may or may not have been done."""


class BugError(GpuwardError):
    """An invariant of gpuward is broken."""
