"""Actions on links, network cards and InfiniBand."""

from agent.contract.actions.spec import ActionSpec, Disrupts, Param, Repeat

ACTIONS = (
    ActionSpec(
        name="link.bounce",
        summary="Takes a network interface down and up again. Refused on the interface of the control path.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.SAFE,
        timeout_s=20,
        params=(
            Param(
                name="link",
                type="component",
                summary="`link/<interface>`, or `port/<device>.<port>` of an InfiniBand device",
            ),
            Param(
                name="down_s",
                type="float",
                summary="pause between down and up, 0 to 10 s (default 0.5)",
                required=False,
            ),
        ),
    ),
    ActionSpec(
        name="nic.reset",
        summary="Resets a network card, from the gentlest way to the hardest, until it is healthy. "
        "Refused on the card of the control path.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.PROBE,
        timeout_s=240,
        params=(
            Param(
                name="nic",
                type="component",
                summary="`nic/<bdf>`, `port/<device>.<port>` or `link/<interface>` of the card",
            ),
            Param(
                name="at_most",
                type="text",
                summary="the hardest way: link, health, reload or driver (default reload)",
                required=False,
            ),
        ),
    ),
    ActionSpec(
        name="ib.port_reset",
        summary="Resets an InfiniBand port (its physical link trains anew). Refused on the port of the control path.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.SAFE,
        timeout_s=60,
        params=(Param(name="port", type="component", summary="`port/<device>.<port>`"),),
    ),
    ActionSpec(
        name="bond.failover",
        summary="Makes another slave of an active-backup bond the active one; only one whose MII status is up. "
        "Refused on the bond of the control path.",
        disrupts=Disrupts.JOB,
        repeat=Repeat.SAFE,
        timeout_s=20,
        params=(
            Param(name="bond", type="component", summary="`bond/<name>` or `link/<name>`"),
            Param(
                name="to",
                type="text",
                summary="the slave (default: the first other one that is up)",
                required=False,
            ),
            Param(
                name="away_from",
                type="text",
                summary="slaves, comma separated: refused while another one is active (default: any is left)",
                required=False,
            ),
        ),
    ),
    ActionSpec(
        name="mtu.set",
        summary="Sets an interface's MTU. Refused on the interface of the control path.",
        disrupts=Disrupts.JOB,
        repeat=Repeat.SAFE,
        timeout_s=20,
        params=(
            Param(name="link", type="component", summary="`link/<interface>`"),
            Param(name="mtu", type="int", summary="bytes, 576 to 65,520"),
        ),
    ),
    ActionSpec(
        name="ib.sm_state",
        summary="Asks the fabric which subnet managers there are and which of them is master; reads only.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=30,
    ),
    ActionSpec(
        name="ib.inspect",
        summary="Looks over the whole InfiniBand fabric from this node (ibqueryerrors, iblinkinfo, and ibdiagnet where it is "
        "configured); all that they print goes into a bundle. Reads only.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=1800,
        params=(
            Param(
                name="watch_s",
                type="float",
                summary="how long the error counters are watched, 0 to 600 s (default 60)",
                required=False,
            ),
        ),
    ),
)
