"""Which requests leave a site by its proxy. The proxy itself: tests/real/test_outgoing.py."""

import inspect
import os
from importlib import import_module
from pathlib import Path

import pytest

from agent.contract.errors import ConfigError
from brain import config
from brain.notify import notifier
from brain.outgoing import Outgoing, outgoing, to_environment
from brain.outgoing_config import OutgoingConfig

PROXY = "http://proxy.example:3128"
WAY = Outgoing(
    proxy=PROXY,
    credentials="ward:s3cret&pass",
    no_proxy=("site.example", ".inside", "10.0.0.0/8", "2001:db8::/32", "198.51.100.7"),
)


@pytest.mark.parametrize(
    ("url", "by_proxy"),
    [
        ("https://events.pagerduty.com/v2/enqueue", True),
        ("http://events.pagerduty.com:80", True),
        ("https://notsite.example", True),
        ("https://198.51.100.8", True),
        ("https://site.example.org", True),
        ("https://site.example:8443/x", False),
        ("https://AM1.Site.Example./x", False),
        ("https://am1.inside", False),
        ("http://10.20.30.40:9090", False),
        ("http://[2001:db8::7]:9090", False),
        ("https://198.51.100.7", False),
        ("http://127.0.0.1:9093", False),
        ("http://[::1]:9093", False),
        ("http://localhost:9093", False),
    ],
)
def test_who_is_reached_by_the_proxy(url: str, *, by_proxy: bool) -> None:
    """Whatever is neither of this machine nor named; only then the proxy is told who we are."""
    assert WAY.proxy_of(url) == (PROXY if by_proxy else None)
    assert (WAY.headers_of(url) is not None) == by_proxy


def test_nothing_shows_the_password() -> None:
    """Not even what Python prints of the value."""
    assert "s3cret" not in repr(WAY)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"proxy": "http://ann:s3cret@proxy:3128"}, "credentials_file"),
        ({"proxy": "https://proxy:3128"}, "want http://host:port"),
        ({"proxy": "proxy:3128"}, "want http://host:port"),
        ({"proxy": "http://proxy:3128/x"}, "want http://host:port"),
        ({"proxy": "http://proxy:0"}, "want http://host:port"),
        ({"proxy": PROXY, "no_proxy": ["a.example, b.example"]}, "outgoing.no_proxy"),
        ({"proxy": "http://proxy:3128\n"}, "want http://host:port"),
        ({"proxy": "http://pro xy:3128"}, "want http://host:port"),
        ({"proxy": "HTTP://proxy:3128"}, "want http://host:port"),
        *(
            ({"proxy": PROXY, "no_proxy": [one]}, "outgoing.no_proxy")
            for one in (
                "*",
                "git.example:8080",
                "10.1.2.3:8080",
                "[::1]",
                "[2001:db8::1]:443",
                "10.0.0.0/33",
                "10.0.0/24",
                "10.0.0.*",
                "a.*.example",
                "a.example/b",
                "a.example\n",
            )
        ),
        ({"proxies": PROXY}, "unknown key"),
    ],
)
def test_what_is_no_proxy_is_refused(keys: dict[str, object], says: str, tmp_path: Path) -> None:
    """With its key, and without the password that stands in it."""
    with pytest.raises(ConfigError, match=says) as refused:
        config.parse({"outgoing": keys}, "brain.toml", tmp_path)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("one", "url"),
    [
        ("*.example", "https://a.example"),
        (".example.", "https://a.example"),
        ("EXAMPLE", "https://a.example"),
        ("10.0.0.1/8", "https://10.9.9.9"),
        ("2001:db8::7", "https://[2001:DB8:0::7]:8443"),
    ],
)
def test_what_is_taken_fits(one: str, url: str, tmp_path: Path) -> None:
    """However it is written: nothing stands there that fits nothing."""
    given = config.parse({"outgoing": {"proxy": PROXY, "no_proxy": [one]}}, "brain.toml", tmp_path).outgoing
    assert outgoing(given).proxy_of(url) is None
    assert outgoing(given).proxy_of("https://b.invalid") == PROXY


def test_libraries_find_it_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """In both spellings; without a proxy in brain.toml nothing is changed."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.setenv(name, "before")
        monkeypatch.setenv(name.lower(), "before")
    to_environment(Outgoing())
    assert os.environ["https_proxy"] == "before"
    to_environment(WAY)
    assert os.environ["HTTPS_PROXY"] == os.environ["https_proxy"]
    assert os.environ["https_proxy"] == "http://ward:s3cret%26pass@proxy.example:3128"
    assert os.environ["no_proxy"].split(",")[:4] == ["localhost", "127.0.0.0/8", "::1", "site.example"]


@pytest.mark.parametrize("type_", sorted(set(notifier.TYPES) - {"log"}))
def test_no_channel_forgets_the_way_out(type_: str) -> None:
    """Whatever it builds from its table gets it: a channel that dropped it would reach nobody behind a proxy."""
    module, _, function = notifier.TYPES[type_].partition(":")
    built = getattr(import_module(module), function)
    assert "way" in inspect.getsource(built).split(":", 1)[1].replace("way: Outgoing", ""), type_


def test_without_the_table_all_is_direct() -> None:
    """The default."""
    assert OutgoingConfig().proxy == ""
    assert Outgoing().proxy_of("https://example.org") is None
