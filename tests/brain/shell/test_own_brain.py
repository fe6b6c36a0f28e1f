"""Where the command line asks when nobody says where: the brain of this machine, as its brain.toml says (decision 98)."""

from pathlib import Path

import pytest

from brain.cli import own_brain
from brain.cli.client import Client
from brain.cli.own_brain import DEFAULT_URL, OwnBrain

CELL = Path("/var/lib/gpuward/cell")
TLS = (
    'tls_cert_file = "/var/lib/gpuward/cell/server.pem"\ntls_key_file = "/var/lib/gpuward/cell/server.key"\n'
)


@pytest.mark.parametrize(
    ("text", "url", "ca_file"),
    [
        ("", DEFAULT_URL, None),
        ("[console]\nport = 9000\n", "http://127.0.0.1:9000", None),
        (f'[console]\nhost = "0.0.0.0"\n{TLS}', "https://127.0.0.1:8470", CELL / "ca.pem"),
        (
            f'data_dir = "/srv/g"\n[console]\n{TLS.replace("/var/lib/gpuward", "/srv/g")}',
            "https://127.0.0.1:8470",
            Path("/srv/g/cell/ca.pem"),
        ),
        # A certificate that the site's own authority has issued: the machine knows it, or somebody says --ca-file.
        ('[console]\ntls_cert_file = "/etc/ssl/g.pem"\n', "https://127.0.0.1:8470", None),
        ('[console]\nhost = "::"\n', "http://[::1]:8470", None),
        ("[console\n", DEFAULT_URL, None),
        ("console = 7\n", DEFAULT_URL, None),
        ('[console]\nport = "x"\nhost = 7\n', DEFAULT_URL, None),
    ],
)
def test_what_a_brain_toml_says(tmp_path: Path, text: str, url: str, ca_file: Path | None) -> None:
    """The port, whether it has a certificate, and whose. One that cannot be read says nothing: `gpuward doctor` tells of it."""
    file = tmp_path / "brain.toml"
    file.write_text(text)
    assert own_brain.place(file) == OwnBrain(url=url, ca_file=ca_file)


def test_without_a_brain_toml_it_is_the_default(tmp_path: Path) -> None:
    """On a machine of somebody's own, in a checkout, and for who may not read it."""
    assert own_brain.place(tmp_path / "none.toml") == OwnBrain(url=DEFAULT_URL, ca_file=None)
    assert own_brain.place(tmp_path) == OwnBrain(url=DEFAULT_URL, ca_file=None)


def test_whoever_names_a_place_means_it() -> None:
    """Also the default's; the authority of this machine's cell does not vouch for others."""
    own = OwnBrain(url="https://127.0.0.1:8470", ca_file=CELL / "ca.pem")
    assumed = Client("", place=own)
    assert (assumed.url, assumed.assumed, assumed.ca_file) == (own.url, True, own.ca_file)
    assert assumed.at(faithful=True).ca_file == own.ca_file
    assert assumed.at(ca_file=Path("/x")).ca_file == Path("/x")
    for named in (Client("https://b:8470", place=own), assumed.at(url="https://b:8470")):
        assert (named.url, named.assumed, named.ca_file) == ("https://b:8470", False, None)
