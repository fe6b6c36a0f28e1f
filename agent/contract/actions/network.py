"""Actions on links, network cards and InfiniBand."""

from agent.contract.actions.spec import ActionSpec, Disrupts, Param, Repeat, Right

ACTIONS = (
    ActionSpec(
        name="link.bounce",
        summary="Takes a network interface down and up again. Refused on the interface of the control path.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.SAFE,
        timeout_s=20,
        needs=(Right.NET_ADMIN,),
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
        summary="Resets a network card by one way after the other, gentlest first, until it is healthy. "
        "Refused on the card of the control path.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.PROBE,
        timeout_s=240,
        needs=(Right.ROOT, Right.NET_ADMIN),
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
        summary="Resets an InfiniBand port, so that its link trains again. Refused on the port of the control path.",
        disrupts=Disrupts.NODE,
        repeat=Repeat.SAFE,
        timeout_s=60,
        needs=(Right.ROOT,),
        params=(Param(name="port", type="component", summary="`port/<device>.<port>`"),),
    ),
    ActionSpec(
        name="bond.failover",
        summary="Makes another slave of an active-backup bond the active one; only a slave whose MII status is up. "
        "Refused on the bond of the control path.",
        disrupts=Disrupts.JOB,
        repeat=Repeat.SAFE,
        timeout_s=20,
        needs=(Right.NET_ADMIN,),
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
                summary="comma separated: refused unless one of these slaves is active (default: no condition)",
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
        needs=(Right.NET_ADMIN,),
        params=(
            Param(name="link", type="component", summary="`link/<interface>`"),
            Param(name="mtu", type="int", summary="bytes, 576 to 65,520"),
        ),
    ),
    ActionSpec(
        name="port.check",
        summary="Checks that InfiniBand ports are active at their rate, interfaces have their carrier, and their cards the full "
        "PCIe width and speed. Waits a minute for it. Reads only.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=120,
        params=(
            Param(
                name="component",
                type="component",
                summary="`port/<device>.<port>`, `link/<interface>` or `nic/<bdf or device>`, which must have its link; any "
                "other, e.g. `node`: all that are in use (default)",
                required=False,
            ),
        ),
        heals=False,
        tests=True,
        measures=True,
    ),
    ActionSpec(
        name="ib.sm_state",
        summary="Finds out which subnet managers the fabric has and which of them is the master; reads only.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=30,
        needs=(Right.ROOT,),
    ),
    ActionSpec(
        name="ib.inspect",
        summary="Inspects the whole InfiniBand fabric from this node (ibqueryerrors, iblinkinfo, and ibdiagnet where it is "
        "configured); all their output goes into a bundle. Reads only.",
        disrupts=Disrupts.NOTHING,
        repeat=Repeat.SAFE,
        timeout_s=1800,
        needs=(Right.ROOT,),
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
