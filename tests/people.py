"""People with tokens, for tests: made in the file of tokens before their brain starts, or while it runs."""

import time
from pathlib import Path
from typing import Any

from brain.console.access.tokens import Tokens
from brain.console_config import Role

# What the configuration of a brain has in [console] for them.
ANN: dict[str, Any] = {"users": {"ann": {"role": "administrator"}}}


def token_file(
    data_dir: Path, name: str = "ann", role: Role = Role.ADMINISTRATOR, *, lasts_s: float = 3600
) -> Path:
    """The file with a new token of this person, beside the brain's data folder."""
    data_dir.mkdir(parents=True, exist_ok=True)
    _, text = Tokens(data_dir / "tokens.json").make(
        name, role, now=time.time(), lasts_s=lasts_s, by="the test"
    )
    path = data_dir.with_name(f"{data_dir.name}-{name}.token")
    path.write_text(text)
    return path


def bearer(path: Path) -> dict[str, str]:
    """The header of a request by whoever has this file."""
    return {"Authorization": f"Bearer {path.read_text().strip()}"}
