"""A card's past: what a GPU had in other places, by its serial number, which follows it into another chassis (decision 70). Pure.

Where a card is, its node says (`node.inventory.gpu`). That it had a fault is remembered for 28 days with each incident that opens
at it. When one opens at a card with a past elsewhere, people are told that the fault may have moved. Nothing is done for it.
"""

import re

from agent.contract.counted import counted
from agent.contract.messages import Event
from brain.core import ids
from brain.core.context import Context
from brain.core.pack.spans import span_text
from brain.core.pack.spec import Text
from brain.core.pack.topology import component_of, type_of
from brain.core.state import CardFault, Incident

KIND = "node.inventory.gpu"
WITHIN_S = 28 * 86_400.0
MAX_FAULTS = 10  # that are remembered of one card
MAX_CARDS = 5000  # with a past
MAX_SLOTS = 32  # of one node
_SLOT = re.compile(r"gpu/[0-9A-Za-z:.]{1,40}")
_SERIAL = re.compile(r"[A-Za-z0-9-]{4,40}")


def feed(ctx: Context, event: Event) -> None:
    """A node says which card is in a slot."""
    if event.kind != KIND or not _SLOT.fullmatch(event.component):
        return
    found = str(event.data.get("serial", "") or event.data.get("uuid", ""))
    slots = _slots(ctx, event.node)
    before = slots.pop(event.component, found)
    if (
        found != before
    ):  # what comes is another card's fault, and no incident of the former one is opened again for it
        place = f"gpu/{event.node}/{event.component.partition('/')[2]}"
        for key in ctx.index.recurred.get(event.node, ()):
            if f"{ids.split(key)[1]}/".startswith(f"{place}/"):
                ctx.state.lately_closed.pop(key, None)
    if _SERIAL.fullmatch(found) and len(slots) < MAX_SLOTS:
        slots[event.component] = found
    if slots:
        ctx.state.cards[event.node] = " ".join(f"{slot}={card}" for slot, card in slots.items())
    else:
        ctx.state.cards.pop(event.node, None)


def opened(ctx: Context, incident: Incident) -> Text | None:
    """An incident opens: if it is a card's, that is remembered. What the card had elsewhere, as a clause; None: nothing."""
    if type_of(incident.scope) != "gpu":
        return None
    slot = "/".join(component_of(incident.scope).split("/")[:2])  # of a MIG instance: its GPU's
    card = _slots(ctx, incident.node).get(slot, "")
    if not card:
        return None
    place, known = f"gpu/{incident.node}/{slot.partition('/')[2]}", ctx.state.card_faults
    faults = [one for one in known.pop(card, ()) if one.at > ctx.now - WITHIN_S]
    known[card] = [*faults, CardFault(at=ctx.now, cause=incident.cause, place=place)][-MAX_FAULTS:]
    if len(known) > MAX_CARDS:
        del known[next(iter(known))]
    elsewhere = [one for one in faults if one.place != place]
    if not elsewhere:
        return None
    causes = ", ".join(dict.fromkeys(one.cause for one in elsewhere))
    where = ", ".join(dict.fromkeys(one.place for one in elsewhere))
    last = span_text(ctx.now - elsewhere[-1].at)
    return Text(
        en=f"the card {card} had {counted(len(elsewhere), 'fault')} ({causes}) at {where}, the last one {last.en} ago: "
        "the fault may have moved with it",
        zh=f"卡 {card} 曾在 {where} 出现 {len(elsewhere)} 次故障（{causes}），最近一次在 {last.zh}前：故障可能随卡转移而来",
    )


def forget_node(ctx: Context, node: str) -> None:
    """A node is gone for good. What its cards had is remembered: they may be elsewhere."""
    ctx.state.cards.pop(node, None)


def _slots(ctx: Context, node: str) -> dict[str, str]:
    """Slot -> the card in it."""
    return dict(one.rsplit("=", 1) for one in ctx.state.cards.get(node, "").split())
