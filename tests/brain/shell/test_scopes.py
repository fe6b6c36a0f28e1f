"""What the console answers to an operator who misspells a scope, a runbook or a node: it would have no effect, silently."""

import pytest

from brain.console.api.verbs import InvalidCommand, check_names
from brain.core.operators.scopes import mistake
from brain.core.pack.spec import Pack, Place, Runbook

NODES = ("gpu-01", "gpu-02")
PLACES = {"gpu-01": Place(leaf="l3", rack="r7"), "gpu-03": Place(leaf="l4")}
WRONG = {
    "nod/gpu-01": "no scope 'nod/gpu-01': want all or TYPE/NAME",
    "gpu-01": "no scope 'gpu-01': did you mean node/gpu-01?",
    "node": "no scope 'node': want all or TYPE/NAME",
    "node/": "no scope 'node/': want all or TYPE/NAME",
    "everything": "no scope 'everything': want all or TYPE/NAME",
    "node/gpu-1": "no node 'gpu-1': did you mean gpu-01",
    "node/xyz": "no node 'xyz' (have: gpu-01, gpu-02, gpu-03)",
    "gpu/gpu-09/0000:3b:00": "no node 'gpu-09': did you mean",
    "gpu/gpu-01": "no scope 'gpu/gpu-01': a gpu is named gpu/gpu-01/NAME",
    "leaf/l33": "no leaf 'l33': did you mean l3?",
    "pod/p1": "no pod 'p1': none is known",
    "fabric/ib": "no fabric 'ib' (have: default)",
}
RIGHT = (
    "all",
    "cell",
    "node/gpu-01",
    "node/gpu-03",
    "gpu/gpu-02/0000:3b:00",
    "leaf/l4",
    "rack/r7",
    "fabric/default",
)


@pytest.mark.parametrize(("scope", "text"), WRONG.items())
def test_a_scope_that_does_not_exist_is_refused_with_what_could_be_meant(scope: str, text: str) -> None:
    """A wrong type, a missing type, an unknown node, a component without a name, a leaf that no node is behind."""
    assert mistake(scope, NODES, PLACES).startswith(text)


@pytest.mark.parametrize("scope", RIGHT)
def test_a_scope_that_exists_is_accepted(scope: str) -> None:
    """Nodes that were heard of, and those that the topology names; any component of them."""
    assert mistake(scope, NODES, PLACES) == ""


def test_a_brain_that_knows_no_node_yet_says_so() -> None:
    """No list of names to choose from, and no riddle."""
    assert mistake("node/n1", (), {}) == "no node 'n1': none is known"


BOUNCE = Runbook(name="link-bounce", summary="take a link down and up", rungs=())
PACK = Pack(version="1", symptoms=(), rules=(), runbooks=(BOUNCE,), places=PLACES)
REFUSED = [
    ("hold", {"scope": "nod/gpu-01", "why": "x"}, "no scope 'nod/gpu-01'"),
    ("mode", {"runbook": "link-bouncee", "mode": "approve"}, "no runbook 'link-bouncee': did you mean link-bounce?"),
    ("mode", {"runbook": "gpu-*", "mode": "approve"}, "no runbook 'gpu-*' (have: link-bounce)"),
    ("mode", {"runbook": "*", "mode": "approve", "nodes": "gpu-1"}, "no node 'gpu-1': did you mean gpu-01"),
]  # fmt: skip
ACCEPTED = [
    ("hold", {"scope": "leaf/l3", "why": "x"}),
    ("release", {"scope": "nod/gpu-01"}),  # a hold that an earlier version accepted
    ("mode", {"runbook": "link-*", "mode": "auto", "nodes": "gpu-03"}),
    ("mode", {"runbook": "*", "mode": "auto", "nodes": "new-*"}),  # nodes that are still to come
    ("ack", {"id": "inc-1"}),
]


@pytest.mark.parametrize(("verb", "args", "text"), REFUSED)
def test_a_command_for_something_that_does_not_exist_is_refused(
    verb: str, args: dict[str, str], text: str
) -> None:
    """A hold that holds nothing, a mode of no runbook, a mode on a node whose name is misspelt."""
    with pytest.raises(InvalidCommand) as caught:
        check_names(verb, args, PACK, NODES)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(("verb", "args"), ACCEPTED)
def test_a_command_for_something_that_exists_or_may_come_is_accepted(verb: str, args: dict[str, str]) -> None:
    """Patterns may be for nodes to come; what was once held can always be released."""
    check_names(verb, args, PACK, NODES)
