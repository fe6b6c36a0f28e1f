"""Hands one page to the library Apprise, in a process of its own: `python -m brain.notify.apprise_process`.

The library reads the answers of services whole, and those of a mail server line by line without an end: what answers for ever
would fill the brain's memory, and no thread can be ended. A process can, and has bounds.

On standard input and output it is JSON: {"url", "title", "body", "kind"}, and the answer {"accepted", "status"}.
"""

import asyncio
import contextlib
import json
import logging
import re
import resource
import sys

from agent.contract.errors import Unreachable

MOST_MEMORY = 1024**3  # of addresses: the library takes a fifth of it
# As this process was started: a package's brain believes no variable of its environment, and never the present folder.
_FLAGS = ("-I" if sys.flags.isolated else "-P", *(["-B"] if sys.flags.dont_write_bytecode else []))
_STATUS = re.compile(r"error[=: ]+(\d{3})\b")


async def notify(url: str, title: str, body: str, kind: str) -> tuple[bool, int]:
    """Returns (accepted, HTTP status in the log or 0). Unreachable: no answer."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *_FLAGS,
            "-m",
            __name__,
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise Unreachable(f"its process cannot be started: {error}") from error
    question = json.dumps({"url": url, "title": title, "body": body, "kind": kind})
    try:
        answer, _ = await process.communicate(question.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        found = json.loads(answer)
        return bool(found["accepted"]), int(found["status"])
    except (ValueError, TypeError, KeyError) as error:  # and never what it said: that may hold the URL
        raise Unreachable(f"its process ended with status {process.returncode}") from error


class _StatusInLog(logging.Handler):
    """Finds the HTTP status in what the library logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.status = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the number. The text may hold the URL."""
        if found := _STATUS.search(record.getMessage()):
            self.status = int(found.group(1))


def main() -> None:
    """Asks once."""
    with contextlib.suppress(
        OSError, ValueError
    ):  # where a site allows less, or forbids it, the unit's own limit counts
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    asked = json.loads(sys.stdin.buffer.read())
    from apprise import Apprise

    service = Apprise.instantiate(asked["url"], suppress_exceptions=True)
    seen = _StatusInLog()
    logging.getLogger("apprise").addHandler(seen)
    try:
        accepted = bool(
            service
            and service.notify(
                title=asked["title"], body=asked["body"], notify_type=asked["kind"], body_format="text"
            )
        )
    except OSError:
        accepted = False
    sys.stdout.write(json.dumps({"accepted": accepted, "status": 0 if accepted else seen.status}))


if __name__ == "__main__":
    main()
