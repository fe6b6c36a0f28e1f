"""One node: what it is made of, how it stands, and what became of it and its cards."""

from typing import Any

from pydantic import Field

from brain.console.api.base import Shape, Time, TwoLanguagesShape
from brain.console.api.fleet_shapes import NodeWord
from brain.console.api.incident_shapes import NoteShape
from brain.console.api.status_shapes import HoldShape, NodeShape


class IncidentBriefShape(Shape):
    """An incident, in a line."""

    id: str
    state: str = Field(description='One of "States of an incident" in reference.md.')
    severity: str
    cause: str
    scope: str
    opened_at: Time | None
    closed_at: Time | None
    closed_why: str


class RunBriefShape(Shape):
    """A run, in a line."""

    id: str
    incident: str
    runbook: str
    state: str = Field(description='One of "States of a run" in reference.md.')
    why: str
    scope: str
    started_at: Time | None
    ended_at: Time | None


class PartPlaceShape(Shape):
    """Where a card was, as nodes told."""

    node: str
    component: str = Field(description="`gpu/<PCI address>` or `nic/<device>`.")
    since: Time | None = Field(description="When it was first told so.")
    seen: Time | None = Field(
        description="When it was last told so: nodes tell at their agent's start and on change."
    )


class PartShape(Shape):
    """A card of a node."""

    component: str = Field(description="`gpu/<PCI address>` or `nic/<device>`.")
    serial: str = Field(
        description="The serial number of a GPU, the GUID of a network card, as the node says; empty: it has not told."
    )
    told: dict[str, Any] = Field(
        description="The fields of node.inventory.gpu or node.inventory.nic (reference.md)."
    )
    since: Time | None = Field(description="When it was first told so.")
    seen: Time | None = Field(description="When it was last told so.")
    word: NodeWord = Field(description="Its most urgent open incident, as one word.")
    incidents: list[IncidentBriefShape] = Field(
        description="Newest first, at most 50. With a serial number: of the card, wherever it was; else of what is in its place."
    )
    places: list[PartPlaceShape] = Field(
        description="Where a part with this serial number was, newest first, this place too; empty: it has no serial number."
    )


class CardShape(Shape):
    """A card by its serial number, wherever it was."""

    serial: str
    node: str = Field(description="The node that told of it last.")
    component: str = Field(description="And where it was there.")
    there: bool = Field(description="Has that node told of nothing else in its place since?")
    told: dict[str, Any] = Field(
        description="The fields of node.inventory.gpu or node.inventory.nic (reference.md)."
    )
    places: list[PartPlaceShape] = Field(description="Newest first.")
    incidents: list[IncidentBriefShape] = Field(
        description="What opened where it was while it was there, newest first, at most 50."
    )
    runs: list[RunBriefShape] = Field(description="What was done about these, newest first.")


class InventoryShape(Shape):
    """What a node told of itself."""

    told: dict[str, Any] = Field(
        description="The fields of node.inventory (reference.md): kernel, driver, product ..."
    )
    since: Time | None = Field(description="When it was first told so.")
    seen: Time | None = Field(description="When it was last told so.")


class NodeDrainShape(Shape):
    """An incident that keeps the node out of service."""

    incident: str
    since: Time | None
    sure: bool = Field(
        description="Has the scheduler said that the node gets no new jobs, and nothing since has put it in doubt?"
    )


class NodeDetailShape(Shape):
    """A node."""

    node: NodeShape = Field(description="As in the list of nodes.")
    word: NodeWord
    booted_at: Time | None = Field(description="When its newest boot was first heard of; null: not yet.")
    fabric: str = Field(description="Empty: the topology does not name the node.")
    inventory: InventoryShape | None = Field(description="null: none was heard since this brain keeps them.")
    before: list[InventoryShape] = Field(
        description="What it told of itself before, newest first, at most 20."
    )
    cards: list[PartShape] = Field(description="Its GPUs and network cards.")
    incidents: list[IncidentBriefShape] = Field(
        description="Open ones: of the node, of its parts, and wider ones that it shows."
    )
    past: list[IncidentBriefShape] = Field(
        description="Those that are over, newest first, at most 100; not those of wider scopes."
    )
    runs: list[RunBriefShape] = Field(description="Newest first, at most 100.")
    holds: list[HoldShape] = Field(description="Those that concern it.")
    drains: list[NodeDrainShape]
    jobs: list[str] | None = Field(
        description="The scheduler's last answer, while it is fresh; null: nobody knows."
    )
    jobs_at: Time | None
    said: list[NoteShape] = Field(description="What people said about it, newest first, at most 100.")
    not_known: list[str] = Field(description="What of all this nobody knows, a sentence each.")
    not_known_texts: list[TwoLanguagesShape] = Field(description="The same sentences, in both languages.")
