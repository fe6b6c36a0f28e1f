"""Kinds about accelerators that not every maker's driver has, or that have no XID: by vendor-neutral names."""

from agent.contract.kinds.base import ERROR, FATAL, INFO, WARNING, Kind, field

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
        component="gpu,node",
        severity=ERROR,
        source="kernel log",
        summary="The driver waits in vain for an accelerator: for a ring, its queues, its firmware or its heartbeat.",
        fields=(
            field("what", "text", "ring | queues | firmware | heartbeat"),
            field("recovered", "bool", "the driver has ended what hung, and nothing else was lost"),
            _MESSAGE,
            field("ring", "text", "the ring", always=False),
            field("device", "int", "number of the NPU, where the line names no address", always=False),
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
        component="gpu,node",
        severity=ERROR,
        source="kernel log",
        summary="The driver reports an error of the accelerator's hardware that was not corrected. `deferred`: bad data that "
        "nothing has used yet; `consumed`: something has, and is ended for it; `fatal`: the whole accelerator is to be reset.",
        fields=(
            field("what", "text", "uncorrected | deferred | consumed | fatal"),
            _MESSAGE,
            field(
                "block", "text", "where: umc (the memory), gfx, sdma, mmhub, ...; aicore, aicpu", always=False
            ),
            field("errors", "int", "how many", always=False),
            field("device", "int", "number of the NPU, where the line names no address", always=False),
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
    Kind(
        name="gpu.fault",
        component="gpu",
        severity=ERROR,
        source="accelerator driver",
        summary="An Ascend NPU has a fault code, or no longer (info). The level is what Huawei's scheduler does about it; one "
        "that no table has is unknown.",
        fields=(
            field("code", "text", "eight hexadecimal digits; none: it is not well and gives no code"),
            field(
                "level",
                "text",
                "not_handle | sub_health | restart_request | restart_job | restart_npu_when_free | restart_npu | separate_npu "
                "| unknown",
            ),
            field("active", "bool", "it is there"),
            field("health", "text", "OK, Warning, Alarm, Critical, UNKNOWN"),
            field("message", "text", "what npu-smi says of it; empty: nothing"),
        ),
        example={
            "code": "80E18402",
            "level": "separate_npu",
            "active": True,
            "health": "Alarm",
            "message": "node type=HBM, sensor type=Memory, event state=multi-bit ECC",
        },
    ),
    Kind(
        name="gpu.tool_hung",
        component="node",
        severity=ERROR,
        source="accelerator driver",
        summary="A tool of the accelerators' maker did not end within its deadline, and was killed. Told once until it answers.",
        fields=(
            field("tool", "text", "npu-smi | hccn_tool"),
            field("waited_s", "float", "deadline", "s"),
            field("times", "int", "how many times since the agent started"),
        ),
        example={"tool": "npu-smi", "waited_s": 20.0, "times": 1},
    ),
    Kind(
        name="gpu.tool_answers",
        component="node",
        severity=INFO,
        source="accelerator driver",
        summary="A tool that had to be killed ends in time again.",
        fields=(
            field("tool", "text", "npu-smi | hccn_tool"),
            field("after_s", "float", "how long it did not", "s"),
        ),
        example={"tool": "npu-smi", "after_s": 90.0},
    ),
)
