"""The brain's configuration: no brain starts with a wrong file, and the message names file and key."""

import base64
import zlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from agent.contract.errors import ConfigError
from brain.adapters.codec import Codec
from brain.cell.authority import Authority
from brain.config import load, parse
from brain.core.inputs import PackLoaded
from brain.core.pack.spec import Digest, Mode, Priority, Settings, Tickets
from brain.notify import notifier
from brain.notify.webhook import WebhookOptions
from brain.options import options
from brain.setting_ranges import RANGES
from tests.brain.world import pack

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sel": "x"}, "site.toml: sel: unknown key"),
    ({"nats": {"embedded": {"prt": 1}}}, "site.toml: nats.embedded.prt: unknown key"),
    ({"settings": {"setle_s": 1}}, "site.toml: settings.setle_s: unknown key"),
    ({"unreachable_after_s": "15"}, "site.toml: unreachable_after_s: Input should be a valid number"),
    ({"console": {"port": 70000}}, "site.toml: console.port: Input should be less than or equal to 65535"),
    (
        {"modes": [{"mode": "yolo"}]},
        "site.toml: modes.0.mode: Input should be 'observe', 'approve' or 'auto'",
    ),
    ({"nats": {"url": "nats://a", "embedded": {"port": 1}}}, "give `url` or `embedded`, not both"),
    (
        {"console": {"users": {"ann": {"role": "operator", "scopes": ["rack/r*", "nod/x"]}}}},
        "console.users.ann.scopes: no scope 'nod/x': want all or TYPE/NAME",
    ),
    ({"console": {"host": "0.0.0.0"}}, "it needs tls_cert_file and tls_key_file, or trusted_proxies"),
    ({"console": {"token_file": "t"}}, "one token for all says nobody's name"),
    ({"console": {"tls_cert_file": "c"}}, "give tls_cert_file and tls_key_file, or neither"),
    ({"console": {"hosts": ["https://g"]}}, "give a name without scheme, port and wildcard"),
    ({"console": {"trusted_proxies": ["proxy"]}}, "give the address of the proxy"),
    ({"console": {"users": {"a b": {"role": "viewer"}}}}, "cannot be a name"),
    ({"console": {"users": {"schedule": {"role": "viewer"}}}}, "cannot be a name"),
    ({"console": {"users": {"ann": {"role": "root"}}}}, "console.users.ann.role"),
    (
        {"settings": {"escalation": {"P1": [{"to": "lead"}]}}},
        "settings.escalation.P1: there is no group 'lead' (have: oncall)",
    ),
    (
        {"settings": {"escalation": {"P1": [{"to": "oncall", "after_s": 60}]}}},
        "settings.escalation.P1: the first group is paged immediately",
    ),
    (
        {"settings": {"escalation": {"P1": [{"to": "oncall"}, {"to": "oncall", "after_s": -5}]}}},
        "settings.escalation.P1: after_s counts from the first page and must not decrease",
    ),
    ({"settings": {"escalation": {"P9": [{"to": "oncall"}]}}}, "settings.escalation.P9"),
    ({"settings": {"digests": {"P1": {"to": "t"}}}}, "settings.digests.P1: what is so urgent does not wait"),
    ({"settings": {"digests": {"P2": {"to": "t"}}}}, "settings.digests.P2: there is no group 't' (have: )"),
    (
        {"settings": {"digests": {"P2": {"to": "oncall"}}}},
        "settings.digests.P2: oncall is paged at once for other severities",
    ),
    (
        {
            "settings": {"digests": {"P2": {"to": "t"}}, "escalation": {"P2": [{"to": "t"}]}},
            "groups": {"t": ["log"]},
        },
        "settings.digests.P2: P2 has a chain in settings.escalation",
    ),
    (
        {
            "settings": {"digests": {"P2": {"to": "t", "hours": [{"from_hour": 9, "until_hour": 9}]}}},
            "groups": {"t": ["log"]},
        },
        "settings.digests.P2: hours need days, and 0 <= from_hour < until_hour <= 24",
    ),
    (
        {"settings": {"digests": {"P2": {"to": "t", "every_s": -1}}}, "groups": {"t": ["log"]}},
        "settings.digests.P2: every_s must not be negative",
    ),
    ({"settings": {"tickets": {"to": "t"}}}, "settings.tickets.to: there is no group 't' (have: )"),
    (
        {
            "settings": {"tickets": {"to": "t"}, "escalation": {"P2": [{"to": "t"}]}},
            "groups": {"t": ["log"]},
        },
        "settings.tickets.to: t is paged, too: give a group of its own",
    ),
    ({"settings": {"tickets": {"to": "oncall"}}}, "settings.tickets.to: oncall is paged, too"),
    (
        {"settings": {"tickets": {"to": "t", "severities": ["P4"]}}, "groups": {"t": ["log"]}},
        "settings.tickets.severities.0: ",
    ),
    (
        {"settings": {"zone": "Mars/Olympus"}},
        "site.toml: settings.zone: the tz database has no zone 'Mars/Olympus'",
    ),
    ({"settings": {"disruptive_runs": -1}}, "site.toml: settings.disruptive_runs: -1 is not 0 to 1,000"),
    ({"settings": {"shared_share": 40}}, "site.toml: settings.shared_share: 40 is not 0 to 1"),
    ({"settings": {"page_repeat_s": [300, 0]}}, "site.toml: settings.page_repeat_s: 0 is not 10 to 604,800"),
    ({"settings": {"page_repeat_s": []}}, "give at least one pause"),
    ({"lease_ttl_s": 3600}, "site.toml: lease_ttl_s: Input should be less than or equal to 60"),
    ({"cell": "a.b"}, "site.toml: cell: cell 'a.b' must be"),
    (
        {"nats": {"embedded": {"nodes": {"n.1": "U"}}}},
        "site.toml: nats.embedded.nodes.n.1: node 'n.1' must be",
    ),
]


@pytest.mark.parametrize(("raw", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_wrong_configuration_is_refused_by_name(raw: dict[str, Any], says: str) -> None:
    """The error names file and key."""
    with pytest.raises(ConfigError) as caught:
        parse(raw, "site.toml", Path("/etc"))
    assert says in str(caught.value)


def test_every_number_of_the_settings_has_a_range() -> None:
    """And its default lies within."""
    numbers = {each.name for each in fields(Settings) if each.type in (int, float, tuple[float, ...])}
    assert numbers == set(RANGES)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# a site\n[settings]\nhold_off_s = 3\nshared_share = 40\n", "brain.toml:4: settings.shared_share: 40 is not 0 to 1"),
        ("settings.breaker_runs = 0\n", "brain.toml:1: settings.breaker_runs: 0 is not 1 to 10,000"),
        ('[[modes]]\nmode = "auto"\n[[modes]]\nmode = "auto"\nrunbook = "link-bonce"\n',
         "brain.toml:5: modes.1.runbook: no runbook 'link-bonce': did you mean link-bounce"),
        ('[[modes]]\nmode = "yolo"\n', "brain.toml:2: modes.0.mode: Input should be"),
        ("\n[nats.embedded]\nprt = 1\n", "brain.toml:3: nats.embedded.prt: unknown key"),
        ("[nats]\nembedded = {prt = 1}\n", "brain.toml:2: nats.embedded.prt: unknown key: did you mean port?"),
        ('[log]\n[consol.oidc]\nissuer = "x"\n', "brain.toml:2: consol: unknown key: did you mean console?"),
        ("settings.hold_of_s = 1\n", "brain.toml:1: settings.hold_of_s: unknown key: did you mean hold_off_s?"),
        ("\ncell = default\n", "brain.toml:2: not TOML: Invalid value"),
        # Pasted from the manual below a file that has the table already, as the one that comes with gpuward does.
        (
            "[log]\n\n[traces]\n# a comment\n\n[traces]\nfile = 'x'\n",
            "brain.toml:6: the table [traces] is there already, in line 3: move what is below this one there",
        ),
        ("[log]\nmax_age_s = 9\nmax_age_s = 8\n", "brain.toml:3: not TOML: Cannot overwrite a value"),
        # The file that comes with gpuward has both tables.
        ('[nats]\nurl = "tls://n"\n[nats.embedded.nodes]\n', "brain.toml:3: nats.embedded: give `url` or `embedded`, not both"),
        ('[nats]\nurl = "tls://n"\n[nats.embedded.nodes]\n', "take out the table [nats.embedded] and all below it"),
    ],
)  # fmt: skip
def test_an_error_names_the_line(tmp_path: Path, text: str, says: str) -> None:
    """Of the key, or of the table that has it."""
    (tmp_path / "brain.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "brain.toml")
    assert says in str(caught.value)


def test_a_mode_may_be_for_many_runbooks(tmp_path: Path) -> None:
    """By a pattern that one of them fits."""
    (tmp_path / "brain.toml").write_text('[[modes]]\nmode = "auto"\nrunbook = "link-*"\n')
    assert load(tmp_path / "brain.toml").modes[0].runbook == "link-*"


def test_the_shipped_example_is_valid_and_shows_the_defaults(tmp_path: Path) -> None:
    """deploy/brain.toml starts a brain, with the default value of every key that it sets."""
    example = Path(__file__).parents[3] / "deploy" / "brain.toml"
    assert load(example).model_dump() == load(None).model_dump()


def test_an_empty_configuration_does_nothing_to_a_machine() -> None:
    """The default mode is observe, for every runbook and node; a configured mode comes after it."""
    assert [one.mode for one in parse({}, "x", Path("/")).site_settings().modes] == [Mode.OBSERVE]
    site = parse({"modes": [{"mode": "auto", "nodes": "sim-*"}]}, "x", Path("/")).site_settings()
    assert [(one.mode, one.nodes) for one in site.modes] == [(Mode.OBSERVE, "*"), (Mode.AUTO, "sim-*")]


def test_the_chains_of_the_example_pass_through_the_log(tmp_path: Path) -> None:
    """The commented escalation chains of deploy/brain.toml are valid, and the same after encoding and decoding."""
    text = (Path(__file__).parents[3] / "deploy" / "brain.toml").read_text()
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    first = next(index for index, line in enumerate(lines) if line == "[settings.escalation]")
    chains = "\n".join(lines[first : first + 3])
    (tmp_path / "brain.toml").write_text(f'{chains}\n[groups]\nlead = ["log"]\nmanager = ["log"]\n')
    site = load(tmp_path / "brain.toml").site_settings()
    assert [step.after_s for step in site.escalation[Priority.P0]] == [0, 300, 900]
    codec = Codec("c1")
    what, body = codec.encode(PackLoaded(id="p", pack=replace(pack(), settings=site)))
    read = codec.decode(f"ward.c1.input.{what}", body, 1)
    assert isinstance(read, PackLoaded)
    assert read.pack.settings == site
    assert [step.to for step in read.pack.settings.escalation[Priority.P1]] == ["oncall", "lead"]


def test_the_digest_of_the_example_passes_through_the_log_with_its_zone(tmp_path: Path) -> None:
    """The engine gets the zone's offsets as data: summer time in Berlin began on 29 March 2026 at 01:00 UTC."""
    text = (Path(__file__).parents[3] / "deploy" / "brain.toml").read_text()
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    first = next(index for index, line in enumerate(lines) if line == "[settings.digests.P2]")
    digest = "\n".join(lines[first : first + 4])
    zone = '[settings]\nzone = "Europe/Berlin"\n'
    (tmp_path / "brain.toml").write_text(f'{zone}{digest}\n[groups]\ntickets = ["log"]\n')
    site = load(tmp_path / "brain.toml").site_settings()
    assert site.digests == {Priority.P2: Digest(to="tickets")}
    assert (1774746000.0, 7200.0) in site.utc_offsets
    what, body = Codec("c1").encode(PackLoaded(id="p", pack=replace(pack(), settings=site)))
    read = Codec("c1").decode(f"ward.c1.input.{what}", body, 1)
    assert isinstance(read, PackLoaded)
    assert read.pack.settings == site


def test_the_tickets_of_the_example_pass_through_the_log(tmp_path: Path) -> None:
    """Its commented tables are valid. Without them the log has no such key, which a brain of 0.2.0 could not read."""
    text = (Path(__file__).parents[3] / "deploy" / "brain.toml").read_text()
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    tables = []
    for head in ("[settings.tickets]", "[channels.jira]", "[channels.desk]"):
        first = lines.index(head)
        tables += lines[first : lines.index("", first)]
    for name in ("jira.token", "desk.authorization"):
        (tmp_path / name).write_text("x")
    shown = "\n".join(tables).replace("/etc/gpuward", str(tmp_path))
    (tmp_path / "brain.toml").write_text(f'{shown}\n[groups]\ntickets = ["jira", "desk"]\n')
    config = load(tmp_path / "brain.toml")
    assert list(notifier.build(config.channels, config.groups, tmp_path).channels) == ["jira", "desk"]
    site = config.site_settings()
    assert site.tickets == Tickets(to="tickets")
    for settings in (site, Settings()):
        what, body = Codec("c1").encode(PackLoaded(id="p", pack=replace(pack(), settings=settings)))
        read = Codec("c1").decode(f"ward.c1.input.{what}", body, 1)
        assert isinstance(read, PackLoaded)
        assert read.pack.settings == settings
        raw = orjson.loads(zlib.decompress(base64.b64decode(orjson.loads(body)["zlib"])))
        assert ("tickets" in raw["settings"]) is (settings.tickets is not None)


def test_the_engine_knows_the_channel_groups(tmp_path: Path) -> None:
    """So that a page to a group that the site does not have is one of those on call."""
    (tmp_path / "brain.toml").write_text('[groups]\nlead = ["log"]\n')
    assert load(tmp_path / "brain.toml").site_settings().groups == ("oncall", "lead")
    assert load(None).site_settings().groups == ("oncall",)


def test_paths_are_relative_to_the_configuration_file(tmp_path: Path) -> None:
    """Not to the folder in which the brain was started."""
    (tmp_path / "brain.toml").write_text('data_dir = "data"\ntopology = "t.yaml"\n')
    (tmp_path / "t.yaml").write_text("n1: {leaf: l1, rack: r1}\n")
    config = load(tmp_path / "brain.toml")
    assert config.data_dir == tmp_path / "data"
    assert config.places()["n1"].leaf == "l1"
    (tmp_path / "t.yaml").write_text("n1: {laef: l1}\n")
    with pytest.raises(ConfigError, match=r"t\.yaml:1: n1\.laef: unknown key: did you mean leaf\?"):
        config.places()


def test_paths_in_plug_in_tables_start_from_the_folder_of_the_file(tmp_path: Path) -> None:
    """In whichever folder the brain was started."""
    (tmp_path / "hook.secret").write_text("s3cret")
    table = {"type": "webhook", "url": "http://127.0.0.1/x", "secret_file": "hook.secret"}
    config = parse({"channels": {"hook": table}}, "site.toml", tmp_path)
    found = options(WebhookOptions, config.channels["hook"], "channels.hook")
    assert found.secret_file == tmp_path / "hook.secret"


@pytest.mark.parametrize(
    "name", ["", "brain 1", "https://brain:8470", "10.0.0.300", "brain:8470", "-x.example", "a..b", "x" * 64]
)
def test_what_is_no_name_gets_no_certificate(name: str, tmp_path: Path) -> None:
    """Nor an authority."""
    with pytest.raises(ConfigError, match="neither a name nor an address"):
        Authority(tmp_path).make("c", [name], 1e9)
    assert not Authority(tmp_path).exists()


@pytest.mark.parametrize("name", ["0.0.0.0", "::", "224.0.0.1"])
def test_an_address_of_nobody_gets_none(name: str, tmp_path: Path) -> None:
    """Tokens would lead nodes there."""
    with pytest.raises(ConfigError, match="leads no node to this machine"):
        Authority(tmp_path).make("c", [name], 1e9)


@pytest.mark.parametrize(
    "name",
    ["brain-1", "brain-1.example.com", "10.0.0.30", "fd00::1", "localhost", "gpu_brain", "3com.example"],
)
def test_a_name_gets_one(name: str, tmp_path: Path) -> None:
    """Of hosts, and of addresses."""
    Authority(tmp_path).make("c", [name], 1e9)
    assert Authority(tmp_path).exists()


def test_the_windows_of_the_page_are_read(tmp_path: Path) -> None:
    """docs/operations.md and the example write dates and times, as people do; the engine has seconds, also on the log."""
    page = (Path(__file__).parents[3] / "docs/operations.md").read_text()
    shown = page.partition("    [[settings.maintenance]]\n")[2].partition("\n\n")[0]
    (tmp_path / "brain.toml").write_text(f"[[settings.maintenance]]\n{shown}\n")
    (window,) = load(tmp_path / "brain.toml").site_settings().maintenance
    assert (window.scope, window.since, window.until) == ("rack/r3", 1796108400.0, 1796122800.0)
    example = (Path(__file__).parents[3] / "deploy/brain.toml").read_text()
    lines = [line.removeprefix("# ") for line in example.splitlines()]
    first = lines.index("[[settings.maintenance]]")
    (tmp_path / "brain.toml").write_text("\n".join(lines[first : lines.index("", first)]))
    assert load(tmp_path / "brain.toml").site_settings().maintenance


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            "since = 2026-12-01T08:00:00",
            "3: settings.maintenance.0.since: want a date and time with its distance from UTC",
        ),
        ("since = 2026-12-01", "3: settings.maintenance.0.since: want a date and time"),
        (
            'since = "2026-12-01T08:00:00Z"',
            "3: settings.maintenance.0.since: want a date and time .* without quotes",
        ),
        ("since = 2026-12-01T13:00:00Z", "4: settings.maintenance.0.until: it is not after `since`"),
        (
            'since = 2026-12-01T08:00:00Z\nscope = "gpu-1"',
            "3: settings.maintenance.0.scope: no scope 'gpu-1': want all or",
        ),
    ],
)
def test_a_window_that_would_hold_for_nothing_is_refused(tmp_path: Path, lines: str, says: str) -> None:
    """With its line: people would rely on it while they pull cables."""
    scope = "" if "scope" in lines else 'scope = "all"\n'
    text = f'[[settings.maintenance]]\n{scope}{lines}\nuntil = 2026-12-01T12:00:00Z\nwhy = "cables"\n'
    (tmp_path / "brain.toml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        load(tmp_path / "brain.toml")
