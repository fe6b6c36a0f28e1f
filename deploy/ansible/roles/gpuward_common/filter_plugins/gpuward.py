"""Filters of the roles: TOML, and what makes a brain reachable."""

import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


class FilterModule:
    """The filters, by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """As Ansible asks for them."""
        return {"gpuward_toml": toml, "gpuward_reach": reach}


def toml(value: Mapping[str, Any]) -> str:
    """A mapping as the text of a TOML file: plain values, then tables, then arrays of tables."""
    return "".join(_table(value, ()))


def reach(names: Sequence[str], config: Mapping[str, Any], data_dir: str) -> dict[str, Any]:
    """What brain.toml says so that other machines reach NATS and the console, as `gpuward cell init --write` sets it.

    `names`: names and addresses of the brain's machine; none: nothing is said. `config`: what the site sets itself.
    """
    if not names:
        return {}
    everywhere = "::" if any(":" in name for name in names) else "0.0.0.0"
    listens: dict[str, Any] = (
        {} if config.get("nats", {}).get("url") else {"nats": {"embedded": {"host": everywhere}}}
    )
    console = {
        "host": everywhere,
        "hosts": [name for name in names if not _is_address(name)],
        "tls_cert_file": f"{data_dir}/cell/server.pem",
        "tls_key_file": f"{data_dir}/cell/server.key",
    }
    return listens | {"console": console}


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    later: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, dict) or _of_tables(value):
            later.append((key, value))
        else:
            yield f"{_key(key)} = {_value(value)}\n"
    for key, value in later:
        name = (*path, _key(key))
        for one in [value] if isinstance(value, dict) else value:
            yield f"\n[{'.'.join(name)}]\n" if isinstance(value, dict) else f"\n[[{'.'.join(name)}]]\n"
            yield from _table(one, name)


def _of_tables(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, dict) for one in value)


def _key(key: object) -> str:
    return str(key) if re.fullmatch(r"[A-Za-z0-9_-]+", str(key)) else json.dumps(str(key), ensure_ascii=False)


def _value(value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if value is None:
        raise ValueError("TOML has no null: leave the key out")
    return json.dumps(value if isinstance(value, bool | int | float) else str(value), ensure_ascii=False)
