"""What a check of a pack found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that the author of a pack must mend."""

    path: tuple[str | int, ...]  # as in the files: ("rules", "gpu-lost", "runbook")
    text: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.text}"
