"""A finding of the checks of a pack."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that the author of a pack must fix."""

    # where, as in the files: ("rules", "gpu-lost", "runbook")
    path: tuple[str | int, ...]
    text: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.text}"
