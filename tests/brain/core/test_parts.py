"""A card and its ports are one fault while the card explains them, and a remedy is verified by both."""

from dataclasses import replace

import pytest

from agent.contract.messages import Severity
from brain.core.pack.spec import Mode, ModeSetting, Settings
from tests.brain.world import Story
from tests.shipped import shipped_pack

SHIPPED = shipped_pack()
CARD, PORT = "nic/mlx5_0", "port/mlx5_0.1"


def story(mode: Mode = Mode.AUTO) -> Story:
    """The shipped rules; no remedy helps."""
    return Story(replace(SHIPPED, settings=Settings(modes=(ModeSetting(mode=mode),))), heals=False)


def breaks(given: Story, at: float) -> None:
    """The firmware of the card stops."""
    given.event(at, "nic.driver", CARD, severity=Severity.FATAL, what="health_compromised")


def down(given: Story, at: float, port: str = PORT) -> None:
    """A port loses its link."""
    given.event(at, "ib.port_state", port, state="DOWN", before="ACTIVE", phys_state="Polling")


@pytest.mark.parametrize("port_first", [True, False])
def test_a_port_of_a_broken_card_is_the_cards(port_first: bool) -> None:
    """In either order; what the port shows is one more match of the card's incident."""
    given = story(Mode.OBSERVE)
    given.event(10, "ib.device", CARD, present=False) if not port_first else down(given, 10)
    down(given, 11) if not port_first else given.event(45, "ib.device", CARD, present=False)
    given.run(100)
    (incident,) = [one for one in given.incidents() if one.state not in ("explained", "closed")]
    assert (incident.cause, incident.scope) == ("ib-device-gone", "nic/n1/mlx5_0")
    assert list(incident.matching_rules) == [
        "ib-device-gone@nic/n1/mlx5_0",
        "ib-port-down@port/n1/mlx5_0.1",
    ]


def test_a_remedy_of_the_card_has_not_helped_while_its_port_is_down() -> None:
    """The next rung is tried, and no second ladder is begun beside the first."""
    given = story()
    breaks(given, 10)
    down(given, 11)
    given.run(1500)
    actions = [action for _, action in given.actions()]
    assert actions.index("nic.reset") < actions.index("node.reboot")
    assert "ib.port_reset" not in actions
    assert [one.cause for one in given.incidents() if "port" in one.scope] == []


def test_an_old_cable_says_nothing_of_the_card() -> None:
    """The port has been down for hours when the card breaks: the card is healed by its reset, and the port has its own fault."""
    given = story()
    down(given, 10)
    given.run(20000)
    before = len(given.performed)
    breaks(given, 20000)
    given.run(20200)
    since = [step.step.action for step in given.performed[before:]]
    assert "node.reboot" not in since
    assert "bmc.power_cycle" not in since


def test_another_cards_port_is_its_own() -> None:
    """A card explains its own ports."""
    given = story(Mode.OBSERVE)
    breaks(given, 10)
    down(given, 11, "port/mlx5_3.1")
    given.run(100)
    assert sorted(one.cause for one in given.incidents() if one.state != "explained") == [
        "ib-port-down",
        "nic-broken",
    ]
