"""Jira, by its REST API: one issue for each incident; what follows are comments, and its end is a transition.

Version 3 is Jira Cloud's, with texts in the Atlassian Document Format; version 2 is that of Data Center, with wiki markup.
https://developer.atlassian.com/cloud/jira/platform/rest/v3/: POST issue (201), issue/KEY/comment (201), issue/KEY/transitions
(204), search/jql; https://developer.atlassian.com/server/jira/platform/rest/: POST search. 400 names the fields that are wrong,
404 is also what one may not see, 429 has Retry-After. An issue is found again by its label `gpuward-<key>`; the search of Cloud
may not know an issue at once after it was made (hence `settle_s`).

Whatever a machine wrote stands in a block of code (Cloud) or of text without format (Data Center): no markup, link or mention of
it counts.
"""

import logging
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import quote

import orjson
from pydantic import Field

from agent.contract.errors import ActionError, ConfigError, Refused, Unreachable
from agent.contract.messages import clip
from agent.shared.secret_file import secret
from brain.notify import http, templates, tickets
from brain.notify.message import Language, PageMessage
from brain.notify.tickets import Gone, TicketChannel
from brain.options import options
from brain.outgoing import DIRECT, Outgoing

_log = logging.getLogger(__name__)
T = TypeVar("T")
MAX_SUMMARY, MAX_LABEL = 255, 255
_MAX_READ = 2**20  # bytes of an answer
_DONE = "done"  # the key of a status category, in every language
_PROJECT = re.compile(r"[A-Z][A-Z0-9_]{1,254}")
_NOT_CLOSED = {
    "en": "gpuward could not close this issue: {why}. Close it by hand.",
    "zh": "gpuward 无法关闭此工单：{why}。请手动关闭。",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JiraOptions:
    """The keys of a table with `type = "jira"`."""

    # https://SITE.atlassian.net, or the base URL of a Data Center
    url: str
    # key of the project
    project: str
    # file with an API token (Cloud, with `user`) or a personal access token (Data Center)
    token_file: Path
    # e-mail address of the account whose API token it is; empty: the token is a personal access token
    user: str = ""
    # 3: Cloud; 2: Data Center and Server
    api: Literal[2, 3] = 3
    # its name, or its number as a text
    issue_type: str = "Task"
    # of each issue, besides the one by which gpuward finds it
    labels: tuple[str, ...] = ("gpuward",)
    # more fields of a new issue, as the REST API has them; a text may name parts of the page: "Names in templates"
    fields: Mapping[str, Any] = field(default_factory=dict)
    # a name for `fields` -> severity -> what it stands for
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # false: an issue whose incident is over is only commented
    close: bool = True
    # that closes it: its name, or that of the status to which it leads; empty: any that leads to a status of the category Done
    transition: str = ""
    # of the screen of that transition, e.g. resolution = { name = "Done" }
    close_fields: Mapping[str, Any] = field(default_factory=dict)
    # by which the issue of a fault that is back is linked with its former one, which was closed; empty: it only names it
    link_type: str = "Relates"
    # where people open the console: a link in the issue
    console_url: str = ""
    # of the rule's knowledge
    language: Language = "both"
    # PEM file; none: the system's CAs
    ca_file: Path | None = None
    # how long Jira's search may not know a new issue
    settle_s: Annotated[float, Field(ge=0, le=120)] = 30.0
    # Timeout of one request
    timeout_s: Annotated[float, Field(gt=0, le=120)] = 20.0
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


class Jira:
    """The issues of one project."""

    def __init__(
        self, want: JiraOptions, token: str, where: str = "channels", way: Outgoing = DIRECT
    ) -> None:
        tls = http.trust(want.ca_file, f"{where}.ca_file")
        self._want = want
        self._http = http.Poster(
            http.checked_url(want.url, f"{where}.url"), timeout_s=want.timeout_s, tls=tls, way=way
        )
        basic = b64encode(f"{want.user}:{token}".encode()).decode()
        self._headers = {
            "Authorization": f"Basic {basic}" if want.user else f"Bearer {token}",
            "Accept": "application/json",
        }

    async def find(self, message: PageMessage) -> str:
        """As in TicketSystem."""
        asked = {
            "jql": f'labels = "{label(message.ticket_key)}" ORDER BY created ASC',
            "fields": ["summary"],
            "maxResults": 1,
        }
        found = await self._ask("POST", "search/jql" if self._want.api == 3 else "search", asked)
        issues = self._has(found, "issues", list)
        return self._key(issues[0]) if issues else ""

    async def is_open(self, ticket: str, message: PageMessage) -> bool:  # noqa: ARG002 - as in TicketSystem
        """As in TicketSystem."""
        return not await self._is_done(ticket)

    async def open(self, message: PageMessage, former: str) -> str:
        """As in TicketSystem. Where the issues cannot be linked, the text of the new one names the former all the same."""
        want = self._want
        body = message.to_text(want.language, tickets.MAX_TEXT)
        known = templates.values(
            message, want.words, want.language, text=body, console_url=want.console_url, former=former
        )
        fields = {
            "project": {"key": want.project},
            "issuetype": _named(want.issue_type),
            "summary": clip(message.subject, MAX_SUMMARY),
            "description": self._text(body, message),
            "labels": [*want.labels, label(message.ticket_key)],
        }
        more = templates.filled(want.fields, known)
        ticket = self._key(await self._ask("POST", "issue", {"fields": more | fields}))
        if former and want.link_type:
            await self._link(ticket, former)
        return ticket

    async def has_told(self, ticket: str, message: PageMessage) -> bool:
        """As in TicketSystem: the description, or one of the newest comments, has the page's mark."""
        described = await self._ask("GET", f"{_of(ticket)}?fields=description", of=ticket)
        if _mark(message).encode() in orjson.dumps(self._has(described, "fields", dict)):
            return True
        newest = await self._ask("GET", f"{_of(ticket)}/comment?orderBy=-created&maxResults=20", of=ticket)
        return _mark(message).encode() in orjson.dumps(self._has(newest, "comments", list))

    async def comment(self, ticket: str, message: PageMessage) -> None:
        """As in TicketSystem."""
        text = message.to_text(self._want.language, tickets.MAX_COMMENT)
        await self._comment(ticket, text, message)

    async def end(self, ticket: str, message: PageMessage) -> None:
        """As in TicketSystem. Where its workflow does not let us, the issue says so: a person must close it."""
        if not self._want.close:
            return
        if await self._is_done(ticket):
            return
        why = await self._transition(ticket)
        if why:
            _log.warning("%s cannot be closed: %s", ticket, why)
            says = {"en": ("en",), "zh": ("zh",), "both": ("en", "zh")}[self._want.language]
            await self._comment(ticket, "\n".join(_NOT_CLOSED[one].format(why=why) for one in says), message)

    async def reach(self) -> str:
        """Asks who we are, and whether the project has the type of issue; makes nothing."""
        try:
            me = await self._ask("GET", "myself")
            project = await self._ask("GET", f"project/{quote(self._want.project)}")
        except Refused as error:
            raise Unreachable(str(error)) from error
        types = [one for one in project.get("issueTypes", ()) if isinstance(one, dict)]
        if not any(self._want.issue_type in (one.get("name"), one.get("id")) for one in types):
            have = ", ".join(str(one.get("name")) for one in types if not one.get("subtask"))
            raise Unreachable(
                f"{self._http.host}: {self._want.project} has no issue type {self._want.issue_type!r} (have: {have})"
            )
        return f"{self._http.host}, as {clip(str(me.get('displayName', me.get('name', '?'))), 60)}"

    async def close(self) -> None:
        """Closes the HTTP session."""
        await self._http.close()

    async def _is_done(self, ticket: str) -> bool:
        known = await self._ask("GET", f"{_of(ticket)}?fields=status", of=ticket)
        return _is_done(self._has(known, "fields", dict))

    async def _link(self, ticket: str, former: str) -> None:
        """Links the new issue with the former one: 201; 404 also where a site has switched links off, or has no such type.
        Without it the issue is as good. https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-links/
        """
        body = {
            "type": {"name": self._want.link_type},
            "inwardIssue": {"key": ticket},
            "outwardIssue": {"key": former},
        }
        try:
            await self._ask("POST", "issueLink", body)
        except ActionError as error:
            _log.warning("%s is not linked with %s: %s", ticket, former, error)

    async def _transition(self, ticket: str) -> str:
        """Closes the issue; returns why it cannot be."""
        answer = await self._ask("GET", f"{_of(ticket)}/transitions", of=ticket)
        ways = [one for one in self._has(answer, "transitions", list) if isinstance(one, dict)]
        chosen = next((one for one in ways if self._closes(one)), None)
        if chosen is None:
            to = repr(self._want.transition) if self._want.transition else "a status of the category Done"
            return f"no transition leads to {to} (have: {', '.join(str(one.get('name')) for one in ways)})"
        body = {"transition": {"id": chosen["id"]}} | (
            {"fields": dict(self._want.close_fields)} if self._want.close_fields else {}
        )
        try:
            await self._ask("POST", f"{_of(ticket)}/transitions", body, of=ticket)
        except http.NotTaken as error:
            if error.status == 409:  # another one is under way
                raise Unreachable(str(error)) from error
            if error.status != 400:
                raise
            return str(error)
        return ""

    def _closes(self, way: Mapping[str, Any]) -> bool:
        given = way.get("to")
        to = given if isinstance(given, dict) else {}
        if self._want.transition:
            return self._want.transition.casefold() in (
                str(one).casefold() for one in (way.get("name"), to.get("name"))
            )
        return _is_done({"status": to})

    async def _comment(self, ticket: str, text: str, message: PageMessage) -> None:
        made = await self._ask(
            "POST", f"{_of(ticket)}/comment", {"body": self._text(text, message)}, of=ticket
        )
        self._has(made, "id", str)

    def _text(self, text: str, message: PageMessage) -> Any:
        """A text for people, with the link to the console and the mark of its page."""
        link = message.in_console(self._want.console_url) if self._want.console_url else ""
        marked = f"{text.rstrip()}\n{_mark(message)}"
        return document(marked, link) if self._want.api == 3 else wiki(marked, link)

    def _has(self, answer: Mapping[str, Any], name: str, kind: type[T]) -> T:
        """A part that each such answer of Jira has. Unreachable: it is somebody else's, such as of a gateway that says to wait,
        and says nothing of what is at Jira, however friendly its status.
        """
        found = answer.get(name)
        if not isinstance(found, kind):
            raise Unreachable(f"{self._http.host}: the answer has no {name!r}: it is not Jira's")
        return found

    def _key(self, answer: Any) -> str:
        key = answer.get("key") if isinstance(answer, dict) else None
        if not isinstance(key, str) or not key:
            raise Unreachable(f"{self._http.host}: the answer names no issue")
        return key

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, of: str = ""
    ) -> dict[str, Any]:
        raw = await self._raw(method, path, body, of=of)
        try:
            answer = orjson.loads(raw or b"{}")
        except orjson.JSONDecodeError as error:
            raise Unreachable(f"{self._http.host}: the answer is not JSON") from error
        return answer if isinstance(answer, dict) else {}

    async def _raw(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, of: str = ""
    ) -> bytes:
        """`of`: the issue. Gone: there is none of this key, and we may see the project."""
        sent = orjson.dumps(body) if body is not None else b""
        try:
            return await self._http.post(
                sent, self._headers, f"/rest/api/{self._want.api}/{path}", method=method, most=_MAX_READ
            )
        except http.NotAdmitted as error:
            if of and error.status == 404:
                await self._raw("GET", f"project/{quote(self._want.project)}")
                raise Gone(f"{self._http.host}: {of} was deleted") from error
            raise


def label(key: str) -> str:
    """Returns the label by which the issue of an alert is found: a label has no spaces."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", f"gpuward-{key}")[:MAX_LABEL]


def document(text: str, link: str = "") -> dict[str, Any]:
    """Returns plain text in the Atlassian Document Format: one block of code, in which nothing is markup.

    https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/
    """
    content: list[dict[str, Any]] = [{"type": "codeBlock", "content": [{"type": "text", "text": text}]}]
    if link:
        shown = {"type": "text", "text": link, "marks": [{"type": "link", "attrs": {"href": link}}]}
        content.insert(0, {"type": "paragraph", "content": [shown]})
    return {"version": 1, "type": "doc", "content": content}


def wiki(text: str, link: str = "") -> str:
    """Returns plain text in Jira's wiki markup: without format, in which only the end of it and a mention count."""
    inside = re.sub(r"\{(?=noformat)", "(", text, flags=re.IGNORECASE).replace("[~", "[ ~")
    return (f"[{link}]\n" if link else "") + f"{{noformat}}\n{inside}\n{{noformat}}"


def _named(issue_type: str) -> dict[str, str]:
    return {"id": issue_type} if issue_type.isdigit() else {"name": issue_type}


def _of(ticket: str) -> str:
    return f"issue/{quote(ticket, safe='')}"


def _mark(message: PageMessage) -> str:
    return f"(gpuward {message.id})"


def _is_done(fields: Any) -> bool:
    status = fields.get("status") if isinstance(fields, dict) else None
    category = status.get("statusCategory") if isinstance(status, dict) else None
    return isinstance(category, dict) and category.get("key") == _DONE


def build(name: str, table: Mapping[str, Any], where: str, way: Outgoing = DIRECT) -> TicketChannel:
    """Builds the channel of a configuration table; ConfigError names the key."""
    want = options(JiraOptions, table, where)
    http.checked_url(want.url, f"{where}.url")
    if not _PROJECT.fullmatch(want.project):
        raise ConfigError(f"{where}.project: want the project's key, such as OPS, not {want.project!r}")
    for number, one in enumerate(want.labels):
        if not one or len(one) > MAX_LABEL or re.search(r"\s", one):
            raise ConfigError(
                f"{where}.labels.{number}: a label has no spaces, and 1 to {MAX_LABEL} characters"
            )
    if want.api == 3 and not want.user:
        raise ConfigError(
            f"{where}.user: is missing: Jira Cloud takes an API token with its account's e-mail address (Data Center: api = 2)"
        )
    for name_ in want.fields:
        if name_ in ("project", "issuetype", "summary", "description", "labels"):
            raise ConfigError(f"{where}.fields.{name_}: gpuward sets it itself")
    templates.check_words(want.words, f"{where}.words")
    templates.check(want.fields, f"{where}.fields", words=want.words, ticket=False)
    templates.check(want.close_fields, f"{where}.close_fields", words={}, ticket=False)
    token = secret(want.token_file, f"{where}.token_file")
    return TicketChannel(name, Jira(want, token, where, way), settle_s=want.settle_s)
