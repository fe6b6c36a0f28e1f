"""What the readers of Redfish resources share: bounded requests, and JSON that need not have the form it should.

A resource that cannot be read is an empty one, and recorded; a BMC that stops answering altogether ends the look.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sushy import exceptions as says

from agent.contract.messages import clip

Get = Callable[[str], dict[str, Any]]
NEWEST = 20  # entries of the end of a log


class RedfishReader:
    """Reads resources of one BMC until the time is up."""

    def __init__(self, get: Get, within_s: float) -> None:
        self._get, self._ends_s = get, time.monotonic() + within_s
        self.unread: list[str] = []  # what could not be read, and why

    def tried(self, path: str) -> dict[str, Any]:
        """Returns a resource; when it cannot be read, an empty one, and records that."""
        if not path:
            return {}
        if time.monotonic() > self._ends_s:
            self.unread.append(f"{path}: no time left")
            return {}
        try:
            return self._get(path)
        except (says.SushyError, ValueError) as error:
            self.unread.append(f"{path}: {clip(' '.join(str(error).split()), 120)}")
            return {}

    def newest(self, path: str) -> list[Mapping[str, Any]]:
        """Returns both ends of a log: some logs begin with the oldest entry, some with the newest."""
        page = self.tried(path)
        found = rows(page, "Members")
        count = page.get("Members@odata.count")
        if isinstance(count, int) and count > len(found) and len(found) > 0:
            found += rows(self.tried(f"{path}?$skip={max(count - NEWEST, len(found))}"), "Members")
        return found

    def members(self, path: str) -> list[str]:
        """Returns the addresses in a collection."""
        return paths(self.tried(path).get("Members")) if path else []


def at(of: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Returns the object at this key; an empty one where there is none."""
    found = of.get(key)
    return found if isinstance(found, Mapping) else {}


def rows(of: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Returns the objects in the list at this key."""
    found = of.get(key)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def link(of: Mapping[str, Any], key: str) -> str:
    """Returns the address that the object at this key points to; empty: none."""
    return str(at(of, key).get("@odata.id") or "")


def paths(found: Any) -> list[str]:
    """Returns the addresses in a list of links."""
    return list(_each(found)) if isinstance(found, list) else []


def _each(found: list[Any]) -> Iterator[str]:
    for one in found:
        if isinstance(one, Mapping) and isinstance(one.get("@odata.id"), str):
            yield one["@odata.id"]
