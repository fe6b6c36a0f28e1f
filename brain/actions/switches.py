"""The actions on switch ports of a site: its `[switches.<name>]`, by UFM or by a tool of its own."""

from brain.actions.base import Action, Site
from brain.actions.switch import Switches, port_actions
from brain.actions.switch_command import CommandSwitches, command_switches
from brain.actions.switch_ufm import UfmSwitches, ufm_switches
from brain.options import kind
from brain.ufm import ufms

_SWITCHES = {"ufm": UfmSwitches, "command": CommandSwitches}


def area(site: Site) -> list[Action]:
    """As in Area."""
    known = ufms(site.config.ufm)
    for one in known.values():
        site.on_close(one.close)
    backends: list[Switches] = []
    for name, table in site.config.switches.items():
        where = f"switches.{name}"
        if kind(table, where, _SWITCHES) == "ufm":
            backends.append(ufm_switches(table, where, known))
        else:
            backends.append(command_switches(table, where))
    return port_actions(backends)
