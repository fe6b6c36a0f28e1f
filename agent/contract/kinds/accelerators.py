"""Kinds about accelerators that not every maker's driver has, or that have no XID: by vendor-neutral names."""

from agent.contract.kinds.base import ERROR, FATAL, WARNING, Kind, field

_LINK_TYPE = field("link_type", "text", "xgmi (AMD) | hccs (Ascend) | roce (Ascend's own network ports)")
_MESSAGE = field("message", "text", "the driver's text")

KINDS: tuple[Kind, ...] = (
    Kind(
        name="gpu.driver_reset",
        component="gpu",
        severity=ERROR,
        source="kernel log",
        summary="The driver resets an accelerator by itself (all work on it is lost), has done so, or could not.",
        fields=(field("state", "text", "begun | succeeded | failed"), _MESSAGE),
        example={"state": "begun", "message": "GPU reset begin!"},
    ),
    Kind(
        name="gpu.hung",
        component="gpu",
        severity=ERROR,
        source="kernel log",
        summary="The driver waits in vain for an accelerator: for a ring, its queues, its firmware or its heartbeat.",
        fields=(
            field("what", "text", "ring | queues | firmware | heartbeat"),
            field("recovered", "bool", "the driver has ended what hung, and nothing else was lost"),
            _MESSAGE,
            field("ring", "text", "the ring", always=False),
        ),
        example={
            "what": "ring",
            "ring": "comp_1.0.1",
            "recovered": False,
            "message": "ring comp_1.0.1 timeout, signaled seq=41, emitted seq=43",
        },
    ),
    Kind(
        name="gpu.hardware_error",
        component="gpu",
        severity=ERROR,
        source="kernel log",
        summary="The driver reports an error of the accelerator's hardware that was not corrected. `deferred`: bad data that "
        "nothing has used yet; `consumed`: something has, and is ended for it; `fatal`: the whole accelerator is to be reset.",
        fields=(
            field("what", "text", "uncorrected | deferred | consumed | fatal"),
            _MESSAGE,
            field("block", "text", "where: umc (the memory), gfx, sdma, mmhub, ...", always=False),
            field("errors", "int", "how many", always=False),
        ),
        example={
            "what": "uncorrected",
            "block": "umc",
            "errors": 1,
            "message": "socket: 2, die: 1, 1 new uncorrectable hardware errors detected in umc block",
        },
    ),
    Kind(
        name="gpu.bad_pages",
        component="gpu",
        severity=FATAL,
        source="kernel log",
        summary="The memory pages of a GPU that went bad and are set aside have reached the number at which its driver wants "
        "it replaced, or nine tenths of it.",
        fields=(
            field("pages", "int", "bad pages"),
            field("threshold", "int", "the number"),
            field("exceeded", "bool", "it is reached; false: nine tenths of it are"),
            _MESSAGE,
        ),
        example={
            "pages": 256,
            "threshold": 256,
            "exceeded": True,
            "message": "Saved bad pages 256 reaches threshold value 256",
        },
    ),
    Kind(
        name="gpu.overheated",
        component="gpu",
        severity=FATAL,
        source="kernel log",
        summary="A GPU has passed the temperature at which its driver or its hardware shuts it, or the system, down.",
        fields=(field("what", "text", "software | hardware"), _MESSAGE),
        example={"what": "software", "message": "GPU over temperature range(SW CTF) detected!"},
    ),
    Kind(
        name="gpu.link_errors",
        component="gpu",
        severity=WARNING,
        source="kernel log",
        summary="Errors of the links between accelerators other than NVLinks; corrected ones are not told.",
        fields=(
            _LINK_TYPE,
            field("counter", "text", "uncorrected, training_failed, TrainingErr, BERExceededErr, ..."),
            field("delta", "int", "how many", always=False),
            field("message", "text", "the driver's text", always=False),
        ),
        example={"link_type": "xgmi", "counter": "BERExceededErr", "message": "XGMI PCS BERExceededErr"},
    ),
    Kind(
        name="gpu.link_state",
        component="gpu",
        severity=ERROR,
        source="accelerator driver",
        summary="An accelerator has fewer active links to others (not NVLinks) than it had; info when it has them again.",
        fields=(
            _LINK_TYPE,
            field("down", "int", "links that are missing; 0: no longer any"),
            field("active", "int", "links that are active"),
            field("links", "text", "numbers of the missing ones"),
        ),
        example={"link_type": "xgmi", "down": 1, "active": 6, "links": "3"},
    ),
)
