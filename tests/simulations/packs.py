"""A small pack for tests that must not depend on the shipped rules."""

from brain.core.pack.spec import (
    Knowledge,
    Match,
    Mode,
    ModeSetting,
    Pack,
    Paging,
    Priority,
    Rule,
    Runbook,
    Rung,
    Settings,
    Symptom,
    Text,
    Verify,
)

_TEXT = Text(en="a test", zh="测试")


def _rule(name: str, scope: str, runbook: str = "", *, page: Paging = Paging.FAILURE) -> Rule:
    return Rule(
        name=name,
        scope=scope,
        when={"symptom": name},
        severity=Priority.P2,
        because=f"{name} was seen",
        knowledge=Knowledge(cause=_TEXT, todo=_TEXT),
        examples=(),
        runbook=runbook,
        resolve_delay_s=5,
        page=page,
    )


def pack(mode: Mode = Mode.AUTO) -> Pack:
    """link_down is healed by a bounce, gpu_lost by a power cycle."""
    return Pack(
        version="test",
        symptoms=(
            Symptom(
                name="link_down",
                scope="link",
                summary="a link is down",
                on=(Match(kind="link.state", where={"up": False}),),
                clear=(Match(kind="link.state", where={"up": True}),),
            ),
            Symptom(
                name="gpu_lost",
                scope="gpu",
                summary="a GPU is lost",
                on=(
                    Match(kind="gpu.xid", where={"code": 79}),
                    Match(kind="gpu.lost"),
                    Match(kind="gpu.removed"),
                ),
                clear=(Match(kind="gpu.returned"),),
            ),
        ),
        rules=(
            _rule("link_down", "link", "link-bounce"),
            _rule("gpu_lost", "gpu", "gpu-lost", page=Paging.OPEN),
        ),
        runbooks=(
            Runbook(
                name="link-bounce",
                summary="down and up",
                rungs=(
                    Rung(
                        name="bounce",
                        do="link.bounce",
                        params={"link": "$component"},
                        verify=Verify(within_s=10, for_s=2),
                    ),
                ),
            ),
            Runbook(
                name="gpu-lost",
                summary="off and on",
                rungs=(Rung(name="power cycle", do="bmc.power_cycle", verify=Verify(within_s=30, for_s=2)),),
            ),
        ),
        settings=Settings(modes=(ModeSetting(mode=mode),), hold_off_s=0.5),
    )
