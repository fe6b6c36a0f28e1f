"""Does an announcement of keys count here? One pure decision (agent/contract/trust.py says what an announcement is)."""

import base64
from collections.abc import Mapping, Sequence

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from agent.contract.errors import ContractError, Refused
from agent.contract.trust import Announcement, Trust, decode_trust


def endorsed(
    announcements: Sequence[Announcement], *, cell: str, serial: int, keys: Mapping[str, bytes]
) -> Trust | None:
    """The last announcement to which a chain of signatures leads from `keys`; None: all of them are old.

    An announcement that no key of the one before has signed is passed over: a node whose configuration is newer than the
    first announcements begins in the middle. Refused: some are new, and none of them is endorsed.
    """
    found: Trust | None = None
    why = ""
    for one in announcements:
        try:
            trust = decode_trust(one.payload)
        except ContractError as error:
            raise Refused(str(error)) from error
        if trust.cell != cell:
            raise Refused(f"it is of cell {trust.cell[:63]!r}, this node is of {cell!r}")
        if trust.serial <= serial:
            continue
        if not _signed(one, keys):
            why = (
                f"announcement {trust.serial} is signed by no key that is trusted here: join this node again "
                "(`gpuward cell token`, `gpuward-agent join`)"
            )
            continue
        found, serial = trust, trust.serial
        keys = {key_id: base64.b64decode(text) for key_id, text in trust.keys.items()}
    if found is None and why:
        raise Refused(why)
    return found


def _signed(announcement: Announcement, keys: Mapping[str, bytes]) -> bool:
    for key_id, text in announcement.signatures.items():
        if key_id in keys:
            try:
                VerifyKey(keys[key_id]).verify(
                    announcement.payload.encode(), base64.b64decode(text, validate=True)
                )
            except (BadSignatureError, ValueError):
                continue
            return True
    return False
