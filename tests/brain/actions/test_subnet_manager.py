"""What the remedies of a subnet manager decide when nodes cannot be reached, commands are refused, and a brain starts again."""

from collections.abc import Mapping
from typing import Any

import pytest

from agent.contract import subnet
from agent.contract.commands import Outcome
from agent.contract.errors import ActionError, ConfigError, Refused, TimedOut, Unreachable
from agent.contract.messages import Scalar
from brain.actions.base import Action, Order
from brain.actions.subnet_manager import subnet_managers
from brain.actions.subnet_view import FabricView, ManagerHost, same_guid
from brain.core.inputs import StepResult

SM1, SM2 = "0x100001", "0x100003"


class Cluster:
    """Two hosts, sm1 (LID 1) and sm2 (LID 3), and two nodes whose ports follow `follows`."""

    def __init__(self) -> None:
        # What each host's manager says of itself; empty: none runs
        self.running = {
            "sm1": "MASTER",
            "sm2": "STANDBY",
        }
        self.frozen: set[str] = set()  # hosts whose manager hears nothing
        self.follows = "sm1"
        self.says: dict[tuple[str, str], tuple[Outcome, str] | Exception] = {}  # (node, action) -> instead
        self.takes_over = True  # a started or left manager becomes master when nobody else is
        self.ids: list[str] = []
        self.orders: list[tuple[str, str, str]] = []

    async def perform(
        self, node: str, action: str, params: Mapping[str, Scalar], *, of: Order, part: str
    ) -> StepResult:
        """As NodeCommands.perform."""
        outcome, why = self._answer(node, action, params, f"{of.id}.{part}")
        return StepResult(id="r", step=f"{of.id}.{part}", outcome=outcome, why=why)

    def _answer(self, node: str, action: str, params: Mapping[str, Scalar], id_: str) -> tuple[Outcome, str]:
        self.ids.append(id_)
        if action != "ib.sm_state":
            self.orders.append((node, action, str(params["unit"])))
        if (instead := self.says.get((node, action))) is not None:
            if isinstance(instead, Exception):
                raise instead
            return instead
        if action == "service.start":
            self.running[node] = self.running[node] or "STANDBY"
        elif action == "service.stop":
            self.running[node] = ""
        self._agree()
        return Outcome.OK, self._view(node).text() if action == "ib.sm_state" else "done"

    def _agree(self) -> None:
        working = [host for host, state in self.running.items() if state and host not in self.frozen]
        if self.takes_over and working and not any(self.running[host] == "MASTER" for host in working):
            self.follows = self.follows if self.follows in working else working[0]
            self.running[self.follows] = "MASTER"

    def _view(self, node: str) -> subnet.SubnetView:
        lids = {"sm1": 1, "sm2": 3, "n1": 5, "n2": 6}
        guids = {"sm1": SM1, "sm2": SM2}
        alive = self.running[self.follows] and self.follows not in self.frozen
        state = self.running[self.follows] if alive else subnet.NO_ANSWER
        here = self.running.get(node, "")
        own = (
            (subnet.Manager(guid=guids[node], lid=lids[node], priority=5, state=here, here=True),)
            if here
            else ()
        )
        port = subnet.PortView(port="mlx5_0.1", lid=lids[node], sm_lid=lids[self.follows], sm=state)
        return subnet.SubnetView(ports=(port,), managers=own)


TABLE = {
    "hosts": [{"node": "sm1"}, {"node": "sm2", "unit": "ufm-opensm.service"}],
    "ask": ["n1", "n2"],
    "look_s": 0.05,
}


def remedies(cluster: Cluster, **more: Any) -> dict[str, Action]:
    """The three actions."""
    return {action.name: action for action in subnet_managers({"default": TABLE | more}, cluster)}


UNHEARD_S = 5.3  # time for a step of which the test knows that no master will answer


def order(timeout_s: float = 60, **params: Scalar) -> Order:
    """One attempt."""
    return Order(
        id="inc-1.r1.s2.a1", incident="inc-1", node="", params=params, timeout_s=timeout_s, why="a test"
    )


def dead_master() -> Cluster:
    """sm1 died, sm2 runs none, the ports still follow sm1."""
    cluster = Cluster()
    cluster.running = {"sm1": "", "sm2": ""}
    return cluster


def frozen_master() -> Cluster:
    """sm1 hears nothing and calls itself master; the standby never was."""
    cluster = Cluster()
    cluster.running, cluster.frozen = {"sm1": "MASTER", "sm2": ""}, {"sm1"}
    return cluster


async def test_while_a_master_answers_nothing_is_done() -> None:
    """All three say so; the fabric's name may be left out, be a scope, and must be known."""
    cluster = Cluster()
    act = remedies(cluster)
    assert (await act["sm.status"].run(order())).text == (
        "a master answers; sm1: MASTER priority 5; sm2: STANDBY priority 5"
    )
    for name, says in (("sm.start_standby", "nothing to start"), ("sm.stop_master", "nothing to stop")):
        assert (await act[name].run(order(fabric="fabric/default"))).text.startswith(says)
        assert (await act[name].plan(order(fabric="default")))[0].startswith("nothing: ")
        with pytest.raises(Refused, match=r"has no fabric 'other' \(have: default\)"):
            await act[name].run(order(fabric="fabric/other"))
    assert cluster.orders == []


async def test_the_one_that_ports_follow_is_started_last() -> None:
    """It may be frozen with its unit active; where no other helps, it is tried all the same."""
    cluster = dead_master()
    act = remedies(cluster)
    assert await act["sm.start_standby"].plan(order()) == [
        "start ufm-opensm.service on sm2",
        "start opensm.service on sm1",
        "after each: wait until a master answers",
    ]
    cluster.says[("sm2", "service.start")] = (Outcome.REFUSED, "not among this node's `services`")
    done = await act["sm.start_standby"].run(order())
    assert done.text.startswith("started opensm.service on sm1: a master answers")
    assert cluster.orders == [
        ("sm2", "service.start", "ufm-opensm.service"),
        ("sm1", "service.start", "opensm.service"),
    ]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((Outcome.REFUSED, "no"), Refused),
        ((Outcome.UNREACHABLE, "no agent listens there"), Unreachable),
        (TimedOut("no result"), TimedOut),
        ((Outcome.FAILED, "did not stay active"), ActionError),
    ],
)
async def test_a_start_that_did_not_help_says_what_may_have_been_done(
    answer: tuple[Outcome, str] | Exception, error: type[ActionError]
) -> None:
    """Nothing was done; or nobody knows; or it was done and did not help."""
    cluster = dead_master()
    cluster.says = {(host, "service.start"): answer for host in ("sm1", "sm2")}
    with pytest.raises(error) as caught:
        await remedies(cluster)["sm.start_standby"].run(order(UNHEARD_S))
    assert type(caught.value) is error
    assert "no working SM" in str(caught.value)


async def test_started_managers_that_do_not_become_master_are_a_failure() -> None:
    """Each gets its share of the step's time."""
    cluster = dead_master()
    cluster.takes_over = False
    with pytest.raises(ActionError, match=r"sm2: ok: done; sm1: ok: done\. no working SM"):
        await remedies(cluster)["sm.start_standby"].run(order(UNHEARD_S))


async def test_a_standby_that_runs_is_not_started() -> None:
    """With one on every host there is nothing to start: the faulty one must go."""
    cluster = frozen_master()
    cluster.running["sm2"] = "STANDBY"
    cluster.takes_over = False
    with pytest.raises(Refused, match="answers on every host already"):
        await remedies(cluster)["sm.start_standby"].run(order())


async def test_a_faulty_master_is_stopped_only_when_another_can_take_over() -> None:
    """The successor is started first and stays when it is the better one; without it nothing is stopped."""
    cluster = frozen_master()
    cluster.says[("sm2", "service.start")] = (Outcome.REFUSED, "masked")
    act = remedies(cluster)
    with pytest.raises(Refused, match="no other host can take over from sm1"):
        await act["sm.stop_master"].run(order())
    assert cluster.running["sm1"] == "MASTER"
    cluster.says = {}
    assert await act["sm.stop_master"].plan(order()) == [
        "start ufm-opensm.service on sm2, to take over",
        "stop opensm.service on sm1",
        "wait until another master answers",
    ]
    cluster.orders.clear()
    done = await act["sm.stop_master"].run(order())
    assert done.text.startswith("nothing to stop any more: a master answers")  # the started one took over
    assert cluster.orders == [("sm2", "service.start", "ufm-opensm.service")]


async def test_a_standby_takes_over_when_the_faulty_master_is_stopped() -> None:
    """Both call themselves something; the one that the ports follow in vain is stopped, once for one step."""
    cluster = frozen_master()
    cluster.running["sm2"] = "STANDBY"
    cluster.takes_over = False
    act = remedies(cluster)

    async def stopped(*args: Any, **more: Any) -> StepResult:
        if args[1] == "service.stop":
            cluster.takes_over = True
        return await plain(*args, **more)

    plain, cluster.perform = cluster.perform, stopped  # type: ignore[method-assign]  # the standby waits for the stop
    assert (await act["sm.stop_master"].plan(order()))[0] == "sm2 runs a manager that can take over"
    done = await act["sm.stop_master"].run(order())
    assert done.text.startswith("stopped opensm.service on sm1: a master answers")
    assert cluster.orders == [("sm1", "service.stop", "opensm.service")]
    assert "inc-1.r1.s2.a1.stop-sm1" in cluster.ids


async def test_a_stop_with_an_unknown_outcome_is_reported_as_unknown() -> None:
    """And one that was refused, as refused: the next rung pages people."""
    for answer, error in ((TimedOut("no result"), TimedOut), ((Outcome.REFUSED, "not allowed"), Refused)):
        cluster = frozen_master()
        cluster.running["sm2"] = "STANDBY"
        cluster.takes_over = False
        cluster.says[("sm1", "service.stop")] = answer
        with pytest.raises(error, match=r"opensm\.service on sm1 was not stopped"):
            await remedies(cluster)["sm.stop_master"].run(order())


async def test_queries_are_repeated_and_commands_are_not() -> None:
    """A brain that begins the step again after a crash must not take an old answer for the fabric's state."""
    ids = []
    for _ in range(2):
        cluster = dead_master()
        await remedies(cluster)["sm.start_standby"].run(order())
        ids.append(cluster.ids)
    assert not {one for one in ids[0] if ".look-" in one} & set(ids[1])
    assert [[one for one in some if ".start-" in one] for some in ids] == [["inc-1.r1.s2.a1.start-sm2"]] * 2


async def test_nodes_that_cannot_be_asked_are_named_and_without_any_nothing_is_done() -> None:
    """One of the two that are asked is enough; a host that cannot be reached may still be seen from elsewhere by its GUID."""
    cluster = Cluster()
    cluster.says = {
        ("n1", "ib.sm_state"): (Outcome.UNREACHABLE, "gone"),
        ("sm2", "ib.sm_state"): (Outcome.OK, "?"),
    }
    text = (await remedies(cluster)["sm.status"].run(order())).text
    assert text.startswith("a master answers; sm1: MASTER priority 5; sm2: none answers")
    assert "n1 could not be asked (unreachable: gone)" in text
    assert "sm2 could not be asked (its answer cannot be read: '?')" in text
    cluster.says[("n2", "ib.sm_state")] = TimedOut("no result")
    for name in ("sm.status", "sm.start_standby", "sm.stop_master"):
        with pytest.raises(Unreachable, match="no node could be asked"):
            await remedies(cluster)[name].run(order())
    assert cluster.orders == []


def seen(lid: int, sm_lid: int, sm: str, here: str = "") -> subnet.SubnetView:
    """A node with one port."""
    own = subnet.Manager(guid=SM1, lid=lid, priority=5, state=here, here=True)
    port = subnet.PortView(port="mlx5_0.1", lid=lid, sm_lid=sm_lid, sm=sm)
    return subnet.SubnetView(ports=(port,), managers=(own,) if here else ())


def look(**nodes: subnet.SubnetView) -> FabricView:
    """sm1 and sm2 can manage; n1, n2 and n3 are asked."""
    hosts = (ManagerHost(node="sm1"), ManagerHost(node="sm2"))
    return FabricView(hosts=hosts, ask=("n1", "n2", "n3"), seen=nodes, unreachable={})


def test_a_master_that_answers_any_node_is_never_faulty() -> None:
    """A node without an answer may itself be faulty: one answer is enough to leave the master alone."""
    well, ill = seen(5, 1, "MASTER"), seen(6, 1, "none")
    sm1, sm2 = seen(1, 1, "none", "MASTER"), seen(3, 1, "none", "")
    assert look(n1=well, n2=well, n3=ill, sm1=sm1, sm2=sm2).works
    assert not look(n1=well, n2=ill, sm1=sm1, sm2=sm2).works
    split = look(n1=well, n2=ill, n3=ill, sm1=sm1, sm2=sm2)
    assert (split.works, split.hung()) == (False, [])
    assert [host.node for host in look(n1=ill, n2=ill, sm1=sm1, sm2=sm2).hung()] == ["sm1"]


def test_the_faulty_one_is_followed_in_vain_or_calls_itself_master() -> None:
    """The one that was just started calls itself master too, and is not it."""
    ill, fresh = seen(5, 1, "none"), seen(5, 0, "none")
    frozen, mute = seen(1, 1, "none", "MASTER"), seen(1, 1, "none", "")
    started, idle = seen(3, 3, "none", "MASTER"), seen(3, 0, "none", "")
    assert [host.node for host in look(n1=ill, sm1=frozen, sm2=started).hung()] == ["sm1"]
    assert [host.node for host in look(n1=ill, sm1=mute, sm2=started).hung()] == ["sm1"]
    assert [host.node for host in look(n1=fresh, sm1=idle, sm2=started).hung()] == ["sm2"]
    assert look(n1=fresh, sm1=idle, sm2=idle).hung() == []
    assert look(sm1=frozen).hung() == []


def test_guids_are_the_same_in_any_spelling() -> None:
    """As sminfo, saquery and people write them."""
    assert same_guid("0x0000000000100001", "0x100001")
    assert same_guid("0010:0001", "0x100001")
    assert not same_guid("0x100001", "0x100003")


def test_a_wrong_table_is_refused_by_name() -> None:
    """Fabric and key stand in the error; without a table there is no action."""
    for table, why in (
        ({"hosts": []}, r"subnet_managers\.default\.hosts: names no host"),
        ({"hosts": [{"node": "a.b"}]}, r"subnet_managers\.default: node 'a\.b' must be"),
        ({"hosts": [{"node": "a", "prio": 1}]}, r"subnet_managers\.default\.hosts\.0\.prio"),
        ({"ask": ["n1"]}, r"subnet_managers\.default\.hosts: names no host"),
        ({"inspect": ["a.b"]}, r"subnet_managers\.default: node 'a\.b' must be"),
    ):
        with pytest.raises(ConfigError, match=why):
            subnet_managers({"default": table}, Cluster())
    assert subnet_managers({}, Cluster()) == []
