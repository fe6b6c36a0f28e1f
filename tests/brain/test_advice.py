"""What people are told to do follows what has happened: the recovery that the driver chose, and whether the node is drained."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from agent.contract.messages import Severity
from brain.core.pack import lint
from brain.core.pack.actions import ACTIONS
from brain.core.pack.spec import Advice, Mode, ModeSetting, Pack, Text
from brain.notify.compose import compose_from
from tests.brain.world import GPU, Story
from tests.shipped import shipped_pack

XID_119: dict[str, Any] = {"code": 119, "name": "GSP_RPC_TIMEOUT", "action": "RESET_GPU", "message": "m"}
# What the driver asks for -> the words of the advice that name it; each has none of the others'.
WORDS = {
    "reset": "Stop what uses the GPU, and reset it (nvidia-smi --gpu-reset).",
    "reboot": "Reboot the node: that is what the driver asks for",
    "bus_reset": "Reboot the node: that is what the driver asks for",
    "system_reboot": "Reboot the node: that is what the driver asks for",
    "drain_p2p": "Stop the jobs that use several GPUs (Drain P2P)",
    "drain_and_reset": "Wait for the running jobs (Drain and Reset), then reset the GPU",
    "recover_imex_domain": "Restart IMEX on all nodes of the NVLink domain (Recover IMEX Domain).",
}


@cache
def shipped(mode: Mode = Mode.OBSERVE) -> Pack:
    """gpuward's own rules."""
    given = shipped_pack()
    return replace(given, settings=replace(given.settings, modes=(ModeSetting(mode=mode),)))


def todo(it: Story, at: int = 0) -> str:
    """What a page says in English, composed as the brain would compose it now."""
    message = compose_from(it.engine.state, it.time.pages[at])
    return message.knowledge["todo"]["en"]


def fatal(it: Story, at: float, **data: Any) -> None:
    """A fatal XID."""
    it.event(at, "gpu.xid", GPU, severity=Severity.FATAL, **XID_119 | data)


@pytest.mark.parametrize("recovery", WORDS)
@pytest.mark.parametrize("by", ["XID 154", "NVML"])
def test_the_advice_is_the_recovery_that_the_driver_chose(recovery: str, by: str) -> None:
    """Told by XID 154 or by NVML, beside the XID that began it: one action, not a list of all."""
    it = Story(shipped())
    fatal(it, 10)
    number = [*WORDS].index(recovery) + 1
    if by == "NVML":
        it.event(10.5, "gpu.recovery_action", GPU, action=number, name=recovery)
    else:
        fatal(
            it,
            10.5,
            code=154,
            name="RECOVERY",
            action="XID_154_EVAL",
            recovery_action=number,
            recovery=recovery,
        )
    it.run(60)
    text = todo(it)
    assert WORDS[recovery] in text
    assert not [words for words in set(WORDS.values()) - {WORDS[recovery]} if words in text]
    assert text.endswith("have the GPU replaced.")


def test_without_a_word_of_the_driver_the_catalogue_decides() -> None:
    """A reset; of a virtual machine whose driver wants it, its restart."""
    for action, words in (("RESET_GPU", WORDS["reset"]), ("RESTART_VM", "Restart the virtual machine")):
        it = Story(shipped())
        fatal(it, 10, action=action)
        it.run(60)
        assert todo(it).startswith(f"Drain the node. {words}")


def test_a_node_that_is_drained_is_not_to_be_drained() -> None:
    """The first page says it; a repeat of it after the drain does not, while the remedy is verified."""
    it = Story(shipped(Mode.AUTO))
    fatal(it, 10)
    it.run(11.5)
    assert todo(it).startswith("Drain the node. Stop what uses the GPU")
    it.run(30)
    assert ("n1", "scheduler.drain") in it.actions()
    assert it.engine.state.drains["n1"]
    assert todo(it).startswith("Stop what uses the GPU")


def test_cases_of_a_rule_are_checked() -> None:
    """Fields that no situation has, texts that are missing, words that nobody fills in."""
    given = shipped_pack()
    rule = next(one for one in given.rules if one.name == "gpu-fatal-xid")
    cases = (
        Advice(when={"recoverie": "reset"}, todo=Text(en="$drian Reset it.", zh="复位")),
        Advice(when={"recovery": "reset"}, todo=Text(en="", zh="reset")),
    )
    knowledge = replace(rule.knowledge, cause=Text(en="$drain", zh="原因"), advice=cases)
    changed = tuple(replace(one, knowledge=knowledge) if one is rule else one for one in given.rules)
    found = [str(one) for one in lint.problems(replace(given, rules=changed), ACTIONS)]
    for says in (
        "no situation has a field 'recoverie'",
        "'$drian' is no word of a `todo`",
        "'$drain' is no word of a `todo`",
        "advice.1.todo.en: is empty",
        "advice.1.todo.zh: has no Chinese text",
    ):
        assert any(says in one for one in found), (says, found)
