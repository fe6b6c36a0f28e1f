"""A certificate that ends: renewed in time, or somebody is told in time, who must do what."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from brain.cell.authority import RENEW_DAYS, SERVER_DAYS, Authority
from brain.cli.cell import cell
from brain.leader import certificate_keeper
from brain.leader.certificate_keeper import CERTIFICATE_ENDS, CertificateKeeper
from tests.brain.shell.test_brain_alerts import Site, site, until

__all__ = ["site"]
DAY_S = 86400.0


def made(folder: Path, days_ago: float) -> Authority:
    """An authority, and a certificate that was issued so long ago."""
    (folder / "cell").mkdir()
    authority = Authority(folder / "cell")
    authority.make("default", ["brain.example"], time.time() - days_ago * DAY_S)
    return authority


@contextlib.asynccontextmanager
async def kept(authority: Authority, of: Site) -> AsyncIterator[None]:
    """While the keeper looks after it."""
    notes = of.alerts._notes
    task = asyncio.create_task(CertificateKeeper(authority, notes=notes, alerts=of.alerts).serve())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def test_one_whose_authority_is_away_is_paged_until_it_is_renewed_by_hand(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 60 days before the end; the page says where ca.key belongs and what to say then."""
    monkeypatch.setattr(certificate_keeper, "LOOK_S", 0.01)
    authority = made(tmp_path, SERVER_DAYS - RENEW_DAYS + 1)
    key = tmp_path / "cell/ca.key"
    away = key.rename(tmp_path / "ca.key")
    async with kept(authority, site):
        await until(lambda: bool(site.pager.pages))
        (page,) = site.pager.pages
        assert page.cause == CERTIFICATE_ENDS
        assert f"put ca.key back in {tmp_path / 'cell'} and say `gpuward cell rotate server`" in page.because
        assert "ends on" in page.because
        away.rename(key)
        authority.issue(["brain.example"], time.time())
        await until(lambda: not site.alerts.open_now)


async def test_one_whose_authority_is_there_is_renewed_and_nobody_is_paged(
    site: Site, tmp_path: Path
) -> None:
    """That is what `ca.key` is there for."""
    authority = made(tmp_path, SERVER_DAYS - RENEW_DAYS + 1)
    async with kept(authority, site):
        await until(lambda: "cell.renewed" in site.notes())
    assert not site.alerts.open_now
    assert authority.ends()[1] > time.time() + (SERVER_DAYS - 1) * DAY_S


@pytest.mark.parametrize(
    ("lasts_days", "left_days", "told"),
    [
        (397, 15, False),
        (397, 13, True),
        (397, -1, True),
        (90, 30, False),
        (90, 13, True),
        (1, 0.3, False),
        (1, 0.1, True),
    ],
)
async def test_what_a_site_s_own_servers_show(
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lasts_days: float,
    left_days: float,
    told: bool,
) -> None:
    """Nobody but the site renews it, in its own rhythm: two weeks before the end somebody is told, or in the last fifth of a
    short life, until another one is shown.
    """
    monkeypatch.setattr(certificate_keeper, "LOOK_S", 0.01)
    ends = time.time() + left_days * DAY_S
    shown = [(ends - lasts_days * DAY_S, ends)]
    keeper = CertificateKeeper(
        made(tmp_path, 1), notes=site.alerts._notes, alerts=site.alerts, shown=lambda: shown[0]
    )
    keeper._tell("")
    assert bool(site.alerts.open_now) is told
    if told:
        task = asyncio.create_task(keeper.serve())
        await until(lambda: bool(site.pager.pages))
        assert "your NATS servers show ends on" in site.pager.pages[0].because or left_days < 0
        shown[0] = (time.time(), time.time() + lasts_days * DAY_S)
        await until(lambda: not site.alerts.open_now)
        task.cancel()
        await asyncio.wait((task,))


@pytest.mark.parametrize(
    ("days_ago", "says"),
    [(1, ""), (SERVER_DAYS - 10, " ENDS SOON"), (SERVER_DAYS + 10, " EXPIRED")],
)
def test_show_says_what_ends(tmp_path: Path, days_ago: float, says: str) -> None:
    """And what to do then."""
    authority = made(tmp_path, days_ago)
    (tmp_path / "cell/ca.key").unlink()
    said = CliRunner().invoke(cell, ["show", "--data", str(tmp_path)]).output
    day = time.strftime("%Y-%m-%d", time.gmtime(authority.ends()[1]))
    line = next(one for one in said.splitlines() if one.startswith("certificate until"))
    assert f"certificate until {day}" in line
    assert f"UTC{says}, authority until" in line
    assert ("put ca.key back" in said) == bool(says)
