"""Who must do what about a server that could not be reached, by why it could not (agent/shared/reasons.py)."""

from agent.shared.reasons import Trouble, trouble
from agent.shared.words import t


def todo(error: BaseException, *, key: str, ca_key: str, credential: str, otherwise: str) -> str:
    """What to do, as a sentence in the reader's language.

    `key`: where brain.toml says who it is; `ca_key`: where it says whom we trust; `credential`: what to do where it refuses us;
    `otherwise`: where nobody can tell why. The last two are sentences in that language.
    """
    match trouble(error):
        case Trouble.NOBODY_LISTENS:
            return t("start it there; or correct host and port in {key}", key=key)
        case Trouble.NO_WAY:
            return t(
                "look at its network, and at the routes and firewalls between it and this machine; or correct the host in {key}",
                key=key,
            )
        case Trouble.NO_ANSWER:
            return t(
                "look whether that machine is up, and whether a firewall between drops what is sent there; or correct {key}",
                key=key,
            )
        case Trouble.UNKNOWN_NAME:
            return t("correct the name in {key}, or this machine's name service (/etc/hosts, DNS)", key=key)
        case Trouble.CERTIFICATE:
            return t(
                "give {ca_key} the authority that has made its certificate; or it one that is in force, and for the name in "
                "{key}",
                ca_key=ca_key,
                key=key,
            )
        case Trouble.TLS:
            return t("write the scheme in {key} that it speaks there, TLS or not", key=key)
        case Trouble.NOT_LET_IN:
            return credential
        case Trouble.OTHER:
            return otherwise
