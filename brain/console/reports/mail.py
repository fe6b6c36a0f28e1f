"""A report as a mail: the file as its body and beside it, with the table, and the figures as plain text. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime

from agent.contract.inert import inert
from brain.console.counters.energy import table as energy_table
from brain.console.reports.gather import ToldReport
from brain.console.reports.page import ReportPage
from brain.console.reports.schedule import DueReport
from brain.reports_config import ReportConfig

LATE_S = 600.0  # so much later than it was due it says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """From whom and to whom, and when."""

    sender: str
    to: Sequence[str]
    # seconds since 1970
    now: float


def composed(
    want: ReportConfig, due: DueReport, page: ReportPage, told: ToldReport, envelope: Envelope
) -> EmailMessage:
    """Returns the mail. One that is sent again has the same Message-ID: mail programs show it once."""
    words = page.words
    late = envelope.now - due.at >= LATE_S
    above = [words("report-late", due=page.moment(due.at))] if late else []
    if due.missed:
        above.append(words("report-missed", times=", ".join(map(page.moment, due.missed))))
    message = EmailMessage()
    title = words(f"report-mail-{want.what}")
    message["Subject"] = inert(f"gpuward {page.cell}: {title} {page.period(told)}")
    message["From"] = envelope.sender
    message["To"] = ", ".join(envelope.to)
    message["Date"] = format_datetime(datetime.fromtimestamp(envelope.now, UTC))
    domain = Address(addr_spec=envelope.sender).domain
    message["Message-ID"] = f"<report.{page.cell}.{want.name}.{int(due.at)}.gpuward@{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    energy = page.energy(told)
    lines = [f"{title}: {page.period(told)}", *above, "", *page.summary(told), ""]
    lines += [*energy, "", words("report-attached")] if energy else [words("report-attached")]
    message.set_content("\n".join(map(inert, lines)) + "\n")
    whole = page.file(told, above)
    message.add_alternative(whole.decode(), subtype="html")
    name = f"gpuward-{page.cell}-{want.what}-{datetime.fromtimestamp(due.at, page.zone):%Y-%m-%d-%H%M}"
    parts = [(whole, "html", f"{name}.html"), (told.table, "csv", f"{name}.csv")]
    if told.energy is not None and told.energy.tenants:
        parts.append((energy_table(told.energy), "csv", f"{name}-energy.csv"))
    for body, kind, file in parts:
        charset = {"charset": "utf-8"}
        message.add_attachment(body, maintype="text", subtype=kind, filename=file, params=charset)
    return message
