"""The actions on the switch ports of a site: its `[switches.<name>]`, through UFM or through a tool of its own."""

from collections.abc import Mapping

from brain.actions.base import Action, Site
from brain.actions.switch import Switches, port_actions
from brain.options import plug_in
from brain.ufm.client import ufms

# One line for each way to set ports: a function (its table, "switches.<name>" for errors, the site's UFMs) -> Switches.
TYPES: Mapping[str, str] = {
    "ufm": "brain.actions.switch_ufm:build",
    "command": "brain.actions.switch_command:build",
}


def area(site: Site) -> list[Action]:
    """As in Area."""
    known = ufms(site.config.ufm)
    for one in known.values():
        site.on_close(one.close)
    backends: list[Switches] = []
    for name, table in site.config.switches.items():
        where = f"switches.{name}"
        backends.append(plug_in(table, where, TYPES)(table, where, known))
    return port_actions(backends)
