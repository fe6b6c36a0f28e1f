"""What all models of the API have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, WithJsonSchema

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]  # ISO 8601, UTC


class Shape(BaseModel):
    """What the brain answers. Keys are stable; later versions may add some."""

    model_config = ConfigDict(frozen=True)


class TwoLanguagesShape(Shape):
    """A text for people."""

    en: str
    zh: str


class Asked(BaseModel):
    """What a client sends: a query or a body. Unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Nothing(Asked):
    """No query, or no body."""
