"""A small Jira: what its REST API checks and answers, by Atlassian's documentation of version 3 (Cloud) and 2 (Data Center).

https://developer.atlassian.com/cloud/jira/platform/rest/v3/ and .../server/jira/platform/rest/; the document format is held to
https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/. One project, OPS, with a workflow of three statuses.
"""

import re
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.brain.notify.receivers import Answer

USER, TOKEN = "gpuward@example.org", "ATATT3x-secret"
CATEGORIES = {"To Do": "new", "In Progress": "indeterminate", "Done": "done"}
WAYS = {  # status -> (id, name, to)
    "To Do": [("11", "Start", "In Progress"), ("31", "Resolve", "Done")],
    "In Progress": [("31", "Resolve", "Done"), ("41", "Back", "To Do")],
    "Done": [("51", "Reopen", "To Do")],
}
MAX_TEXT, MAX_SUMMARY = 32_767, 255
KNOWN = {
    "project",
    "issuetype",
    "summary",
    "description",
    "labels",
    "priority",
    "customfield_10010",
    "customfield_10020",
}


@dataclass(slots=True, kw_only=True)
class Issue:
    """One issue."""

    key: str
    fields: dict[str, Any]
    made_at: float
    status: str = "To Do"
    comments: list[Any] = field(default_factory=list)
    # the fields of its last transition
    resolved: dict[str, Any] = field(default_factory=dict)


class JiraServer:
    """Its state, and `api` as a judge of `receivers.receiving`."""

    def __init__(self, version: int = 3) -> None:
        self.version = version
        self.issues: dict[str, Issue] = {}
        self.made = 0
        self.lag_s = 0.0  # how long the search does not know a new issue
        self.lost = 0  # so many next answers to what was done do not come back
        self.ways = WAYS
        self.resolution = False  # the screen of Resolve asks for it
        self.may_comment = True
        self.sees_project = True
        self.busy = False  # another transition is under way
        self.searches = 0
        self.links: list[tuple[str, str]] = []
        self.may_link = True
        basic = b64encode(f"{USER}:{TOKEN}".encode()).decode()
        self.authorization = f"Basic {basic}" if version == 3 else f"Bearer {TOKEN}"

    def api(self, request: web.Request, body: Any) -> Answer:
        """One request."""
        base = f"/jira/rest/api/{self.version}/"
        if request.headers.get("Authorization") != self.authorization:
            return 401, "Client must be authenticated to access this resource."
        if not request.path.startswith(base):
            return 404, {"message": f"null for uri: {request.path}", "status-code": 404}
        if request.method in ("POST", "PUT") and request.content_type != "application/json":
            return 415, ""
        way = request.path.removeprefix(base).split("/")
        match request.method, way:
            case "GET", ["myself"]:
                return 200, {"displayName": "gpuward", "active": True}
            case "GET", ["project", key]:
                return self._project(key)
            case "POST", ["search", "jql"] if self.version == 3:
                return self._search(body)
            case "POST", ["search"]:
                if self.version == 3:
                    return 410, {"errorMessages": ["The requested API has been removed."], "errors": {}}
                return self._search(body)
            case "POST", ["issue"]:
                return self._lose(self._create(body))
            case "POST", ["issueLink"]:
                return self._link(body)
            case method, ["issue", key, *rest]:
                issue = self.issues.get(key) if self.sees_project else None
                if issue is None:
                    says = "Issue does not exist or you do not have permission to see it."
                    return 404, {"errorMessages": [says], "errors": {}}
                return self._of(method, issue, rest, request.query, body)
        return 405, {"message": "HTTP 405 Method Not Allowed"}

    def only(self) -> Issue:
        """The one issue that there is."""
        (issue,) = self.issues.values()
        return issue

    def _of(self, method: str, issue: Issue, rest: list[str], query: Mapping[str, str], body: Any) -> Answer:
        match method, rest:
            case "GET", []:
                to = {"name": issue.status, "statusCategory": {"key": CATEGORIES[issue.status]}}
                have = issue.fields | {"status": to}
                asked = query["fields"].split(",")
                return 200, {"key": issue.key, "fields": {name: have.get(name) for name in asked}}
            case "GET", ["comment"]:
                newest = issue.comments[::-1] if query.get("orderBy") == "-created" else issue.comments
                shown = newest[: int(query.get("maxResults", "50"))]
                return 200, {"startAt": 0, "total": len(issue.comments), "comments": shown}
            case "POST", ["comment"]:
                return self._lose(self._comment(issue, body))
            case "GET", ["transitions"]:
                return 200, {
                    "expand": "transitions",
                    "transitions": [_way(*one) for one in self.ways[issue.status]],
                }
            case "POST", ["transitions"]:
                return self._lose(self._transition(issue, body))
        return 405, {"message": "HTTP 405 Method Not Allowed"}

    def _lose(self, answer: Answer) -> Answer:
        """It was done, and a proxy on the way back says so to nobody."""
        if self.lost and answer[0] < 300:
            self.lost -= 1
            return 502, "Bad Gateway"
        return answer

    def _project(self, key: str) -> Answer:
        if key != "OPS" or not self.sees_project:
            return 404, {"errorMessages": [f"No project could be found with key '{key}'."], "errors": {}}
        types = [
            {"id": "10001", "name": "Task", "subtask": False},
            {"id": "10002", "name": "Sub-task", "subtask": True},
        ]
        return 200, {"id": "10000", "key": "OPS", "issueTypes": types}

    def _link(self, body: Any) -> Answer:
        if not self.may_link:
            return 404, {"errorMessages": ["Issue linking is currently disabled."], "errors": {}}
        if set(body) - {"type", "inwardIssue", "outwardIssue", "comment"} or body["type"] != {
            "name": "Relates"
        }:
            return 404, {"errorMessages": ["No issue link type with name was found."], "errors": {}}
        ends = body["inwardIssue"]["key"], body["outwardIssue"]["key"]
        if not set(ends) <= set(self.issues):
            return 404, {"errorMessages": ["Issue does not exist."], "errors": {}}
        self.links.append(ends)
        return 201, ""

    def _search(self, body: Any) -> Answer:
        self.searches += 1
        if unknown := set(body) - {"jql", "fields", "maxResults", "nextPageToken", "startAt"}:
            return 400, {"errorMessages": [f"Unrecognized field {unknown}"]}
        asked = re.fullmatch(r'labels = "([^"\\]+)" ORDER BY created ASC', body.get("jql", ""))
        if asked is None:
            return 400, {"errorMessages": ["Error in the JQL Query."], "warningMessages": []}
        known = [
            one
            for one in self.issues.values()
            if asked[1] in one.fields["labels"] and time.monotonic() - one.made_at >= self.lag_s
        ]
        # Version 3 names only the number of an issue, unless fields are asked for.
        issues = [
            {"id": one.key.removeprefix("OPS-")}
            | ({"key": one.key, "fields": {}} if body.get("fields") else {})
            for one in known[: body.get("maxResults", 50)]
        ]
        return 200, {"issues": issues} | ({"isLast": True} if self.version == 3 else {"total": len(known)})

    def _create(self, body: Any) -> Answer:
        given = body.get("fields", {})
        wrong: dict[str, str] = {
            name: f"Field '{name}' cannot be set. It is not on the appropriate screen, or unknown."
            for name in set(given) - KNOWN
        }
        if given.get("project") != {"key": "OPS"}:
            wrong["project"] = "valid project is required"
        if given.get("issuetype") not in ({"name": "Task"}, {"id": "10001"}):
            wrong["issuetype"] = "Specify a valid issue type"
        summary = given.get("summary")
        if not isinstance(summary, str) or not summary.strip():
            wrong["summary"] = "You must specify a summary of the issue."
        elif "\n" in summary or len(summary) > MAX_SUMMARY:
            wrong["summary"] = "Summary must be one line of at most 255 characters."
        if why := self._wrong_text(given.get("description")):
            wrong["description"] = why
        for one in given.get("labels", []):
            if not isinstance(one, str) or " " in one or not 0 < len(one) <= 255:
                wrong["labels"] = f"The label '{one}' contains spaces which is invalid."
        if "priority" in given and given["priority"].get("name") not in ("High", "Medium", "Low"):
            wrong["priority"] = "Specify a valid value for priority"
        if not isinstance(given.get("customfield_10010", ""), str):
            wrong["customfield_10010"] = "Operation value must be a string"
        if not isinstance(given.get("customfield_10020", 1), int):
            wrong["customfield_10020"] = "Operation value must be a number"
        if wrong:
            return 400, {"errorMessages": [], "errors": wrong}
        self.made += 1
        key = f"OPS-{self.made}"
        self.issues[key] = Issue(key=key, fields=given, made_at=time.monotonic())
        return 201, {"id": str(10_000 + self.made), "key": key, "self": f"https://jira/rest/api/{key}"}

    def _comment(self, issue: Issue, body: Any) -> Answer:
        if not self.may_comment:
            return 403, {
                "errorMessages": ["You do not have the permission to comment on this issue."],
                "errors": {},
            }
        if set(body) - {"body", "visibility", "properties"} or (why := self._wrong_text(body.get("body"))):
            return 400, {"errorMessages": ["Comment body is not valid!"], "errors": {"comment": why}}
        issue.comments.append({"id": str(len(issue.comments)), "body": body["body"]})
        return 201, issue.comments[-1]

    def _transition(self, issue: Issue, body: Any) -> Answer:
        if self.busy:
            return 409, {"errorMessages": ["The issue is being transitioned already."], "errors": {}}
        ways = {id_: to for id_, _, to in self.ways[issue.status]}
        if body.get("transition", {}).get("id") not in ways:
            return 400, {"errorMessages": ["This operation is not valid for the current state of the issue."]}
        if self.resolution and body.get("fields") != {"resolution": {"name": "Done"}}:
            return 400, {"errorMessages": [], "errors": {"resolution": "Resolution is required."}}
        issue.status = ways[body["transition"]["id"]]
        issue.resolved = body.get("fields", {})
        return 204, ""

    def _wrong_text(self, text: Any) -> str:
        if self.version == 2:
            return (
                ""
                if isinstance(text, str) and 0 < len(text) <= MAX_TEXT
                else "Operation value must be a string"
            )
        why = wrong_document(text)
        return f"Operation value must be an Atlassian Document: {why}" if why else ""


def wrong_document(given: Any) -> str:
    """Why Jira would not take it as a document: only the nodes that gpuward uses are known here."""
    if not isinstance(given, dict) or set(given) != {"type", "version", "content"}:
        return "not a document"
    if given["type"] != "doc" or given["version"] != 1 or not given["content"]:
        return "doc"
    length = 0
    for block in given["content"]:
        if set(block) != {"type", "content"} or block["type"] not in ("paragraph", "codeBlock"):
            return f"block {block.get('type')}"
        for part in block["content"]:
            if part.get("type") != "text" or not isinstance(part.get("text"), str) or not part["text"]:
                return "a text must not be empty"
            marks = part.get("marks", [])
            if marks and block["type"] == "codeBlock":
                return "a block of code has no marks"
            if any(set(mark) != {"type", "attrs"} or mark["type"] != "link" for mark in marks):
                return "mark"
            if any(not mark["attrs"]["href"].startswith("http") for mark in marks):
                return "href"
            if set(part) - {"type", "text", "marks"}:
                return "text"
            length += len(part["text"])
    return "" if length <= MAX_TEXT else "CONTENT_LIMIT_EXCEEDED"


def text_of(body: Any) -> str:
    """The words of a description or comment, of either version."""
    if isinstance(body, str):
        return body
    return "\n".join(part["text"] for block in body["content"] for part in block["content"])


def _way(id_: str, name: str, to: str) -> dict[str, Any]:
    return {"id": id_, "name": name, "to": {"name": to, "statusCategory": {"key": CATEGORIES[to]}}}
