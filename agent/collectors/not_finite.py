"""Lines of trainers that say that a result is not a finite number. Not a collector; a part of joblog.

Most trainers print a loss that all ranks share: it tells that the job computes NaN, and nothing of where that began. Some lines
are of one rank's own result, before it is combined with those of others, and name the machine: only these can accuse a node.
Megatron-LM computes such a result once more (`--rerun-mode validate_results`), first on the same GPU, then on another one, and
says what came of it.
"""

import re
from dataclasses import dataclass
from typing import Final

MARKERS = (
    "loss",
    "Loss",
    "nan",
    "NaN",
    "verflow",
    "OVERFLOW",
    "Unexpected result",
    "Possible ",
    "Correct result",
)
LOSS: Final = "loss"  # of all ranks together, or of nobody knows which
LOCAL: Final = "local"  # of one rank, before it is combined with others
NOT_REPRODUCIBLE: Final = "not_reproducible"  # the same GPU computed something else the second time
ELSEWHERE: Final = "other_gpu_differs"  # another GPU computed something else: the one before was wrong
REPRODUCED: Final = "reproduced"  # another GPU computed the same: it is the program's
GRADIENT: Final = "gradient"  # an overflow of the gradients, which a loss scaler meets now and then

_NAN = r"[-+]?(?:nan|NaN|NAN)\b"
_INF = r"[-+]?(?:inf|Inf|INF|[Ii]nfinity)\b"
_IS = r"['\"]?\s{0,4}(?:[:=]|\bis\b)?\s{0,6}['\"]?(?:tensor\(\[?)?"
# `loss: nan`, `loss=nan`, `'loss': nan`, `lm loss: NaN |`, `train_loss -nan`, `loss=nan.0`, `Loss is nan, stopping training`
_LOSS = re.compile(rf"[Ll]oss{_IS}(?:{_NAN}|({_INF}))")
_SO_FAR = re.compile(
    r"(?i)(?:best|min|minimum|lowest|previous|prev|last)[\w \t./'-]{0,24}$"
)  # `best loss: inf`: none yet
_NORM = re.compile(rf"grad(?:ient)?[ _]?norm{_IS}(?:{_NAN}|{_INF})")
# Megatron-LM's and NeMo's lines count them, mostly 0.
_COUNTED = re.compile(r"number of nan iterations:\s{0,8}[1-9]")
# PyTorch's anomaly detection, JAX's jax_debug_nans, Keras's TerminateOnNaN, DeepSpeed at its smallest loss scale.
_ENDS = re.compile(
    r"Function '[^']{1,120}' returned nan values in its|invalid value \((?:nan|inf)\) encountered in"
    r"|Invalid loss, terminating training|loss scale already at minimum"
)
# DeepSpeed, Apex, Megatron-DeepSpeed
_OVERFLOW = re.compile(
    r"Overflow detected\. Skipping step|OVERFLOW!.{0,40}Skipping step|Gradient overflow\.\s{1,4}Skipping step"
)
# Megatron-LM: checks of each rank before the all-reduce, and what came of computing it again.
_OWN = re.compile(
    r"found (?:NaN|Inf) in local (?:forward loss|grad norm)|Unexpected result .{0,60}?(?:nan|NaN|inf)\b.{0,200}\(message="
)
_AGAIN = (
    (re.compile(r"Possible transient error!"), NOT_REPRODUCIBLE),
    (re.compile(r"Possible persistent error!"), ELSEWHERE),
    (re.compile(r"Correct result \(but possible Application error\)"), REPRODUCED),
)
_RANK = re.compile(r"(?i)\brank[\s:=]{0,3}([0-9]{1,6})\b")
_DEVICE = re.compile(r"(?i)\bdevice[\s:=]{1,3}(?:cuda:|npu:)?([0-9]{1,3})\b")
_NODE = re.compile(r"(?i)\bnode[\s:=]{1,3}([A-Za-z0-9][A-Za-z0-9._-]{0,252})")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFinite:
    """What one line says."""

    what: str
    # None: the line names none.
    rank: int | None = None
    # Number of the GPU as the program counts; None likewise.
    device: int | None = None
    # Host name of the machine that the line names; empty likewise.
    node: str = ""


def read(text: str) -> NotFinite | None:
    """None: an ordinary line."""
    what = _what(text)
    if not what:
        return None
    rank, device, node = _RANK.search(text), _DEVICE.search(text), _NODE.search(text)
    return NotFinite(
        what=what,
        rank=int(rank[1]) if rank else None,
        device=int(device[1]) if device else None,
        node=node[1].rstrip(".-") if node else "",
    )


def same_host(one: str, other: str) -> bool:
    """Whether two host names, one of them perhaps with its domain, may be of one machine; an empty one is nobody's."""
    short = one.partition(".")[0].lower()
    return bool(short) and short == other.partition(".")[0].lower()


def _what(text: str) -> str:
    for pattern, what in _AGAIN:
        if pattern.search(text):
            return what
    if _OWN.search(text):
        return LOCAL
    if _ENDS.search(text) or _COUNTED.search(text):
        return LOSS
    for found in _LOSS.finditer(text):
        if found[1] is None or not _SO_FAR.search(text, 0, found.start()):
            return LOSS
    return GRADIENT if _OVERFLOW.search(text) or _NORM.search(text) else ""
