"""What `gpuward fleet` needs of a cell's answers. Each cell is looked after by others, and one of any version, or what stands in
its place, must not hide the rest of the fleet: what is not as here is no answer.
"""

from typing import Any, Literal

from pydantic import BaseModel, ValidationError


class _Trouble(BaseModel):
    text: str


class _Status(BaseModel):
    cell: str
    brain: str
    leads: bool
    leader: str
    stopped: str
    troubles: list[_Trouble]
    nodes: int
    nodes_unreachable: int
    holds: list[Any]


class _Pages(BaseModel):
    acked_by: str


class _Incident(BaseModel):
    id: str
    severity: Literal["P0", "P1", "P2", "P3"]
    state: str
    opened_at: str | None
    cause: str
    scope: str
    nodes: int
    runs: list[Any]
    pages: _Pages
    times: int = 1  # a brain of 0.1 does not tell


class _Incidents(BaseModel):
    incidents: list[_Incident]


def wrong(status: Any, incidents: Any) -> str:
    """Why these are not the answers of a brain at `/api/v1/status` and `/api/v1/incidents`; empty: they are."""
    kinds: tuple[tuple[str, type[BaseModel], Any], ...]
    kinds = (("status", _Status, status), ("incidents", _Incidents, incidents))
    for name, kind, found in kinds:
        try:
            kind.model_validate(found, strict=True)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in (name, *first["loc"]))
            return f"what answers there is no brain that this gpuward knows ({where}: {first['msg']})"
    return ""
