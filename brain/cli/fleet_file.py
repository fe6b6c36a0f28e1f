"""fleet.toml: the cells that `gpuward fleet` shows.

[cells.east]
urls = ["https://brain1.east:8470", "https://brain2.east:8470"]  # the first one that answers and hears nodes
token_file = "east.token"                                       # of a viewer; beside this file
ca_file = "east-ca.pem"
"""

import os
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from agent.contract.errors import ConfigError
from agent.shared.words import t
from brain import toml_lines

NAME = "fleet.toml"


class CellEntry(BaseModel):
    """One cell: where its brains are, and how we come in."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    urls: list[str] = Field(min_length=1, description="Its brains. Each answers for the whole cell.")
    token_file: Path | None = Field(None, description="A viewer's token is enough.")
    ca_file: Path | None = Field(None, description="Of an https:// brain; default: the system's.")

    @field_validator("urls")
    @classmethod
    def _http(cls, urls: list[str]) -> list[str]:
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise ValueError(t("{url} must begin with http:// or https://", url=repr(url)))
        return urls


class FleetFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cells: dict[str, CellEntry] = Field(min_length=1)


def default_file() -> Path:
    """Where it is if nobody says it: the user's own, else the machine's."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    own = Path(home).expanduser() / "gpuward" / NAME
    return own if own.exists() else Path("/etc/gpuward") / NAME


def read(file: Path) -> FleetFile:
    """Reads it; files that it names are beside it. ConfigError: what is wrong, and in which line."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or t("it is not UTF-8")
        raise ConfigError(
            t(
                "{file}: {why}: write one [cells.NAME] table for each cell (docs/scale.md), or set --file or "
                "GPUWARD_FLEET",
                file=file,
                why=why,
            )
        ) from error
    try:
        found = FleetFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: {error}") from error
    except ValidationError as error:
        raise ConfigError("\n".join(_line(file, text, one) for one in error.errors())) from error
    return FleetFile(cells={name: _beside(file, cell) for name, cell in found.cells.items()})


def _line(file: Path, text: str, error: ErrorDetails) -> str:
    key = [str(part) for part in error["loc"]]
    number = toml_lines.line_of(text, key)
    what = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        known = CellEntry.model_fields if key[0] == "cells" else FleetFile.model_fields
        what = t("no such key; known: {sorted}", sorted=", ".join(sorted(known)))
    return f"{file}{f':{number}' if number else ''}: {'.'.join(key)}: {what}"


def _beside(file: Path, cell: CellEntry) -> CellEntry:
    files = {"token_file": cell.token_file, "ca_file": cell.ca_file}
    return cell.model_copy(
        update={key: file.parent / one.expanduser() for key, one in files.items() if one is not None}
    )
