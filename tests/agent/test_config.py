"""The agent's configuration: what is wrong is said with file and key."""

import dataclasses
import re
from pathlib import Path

import pytest

from agent.config import AgentConfig, describe
from agent.config_file import load
from agent.contract.errors import ConfigError

KEY = "A" * 43 + "="


def test_defaults_are_safe() -> None:
    """Without a file the agent may only collect evidence, and believes only the kernel."""
    config = load(None)
    assert config.allow == ("evidence.collect",)
    assert config.kmsg_facilities == (0,)
    assert config.services == ()
    assert config.trusted_keys == {}
    assert config.node, "the host name is filled in"
    assert config.root == Path("/")


def test_a_file_and_overrides_are_read(tmp_path: Path) -> None:
    """The file replaces defaults, the command line replaces the file; lists and tables work in both."""
    file = tmp_path / "agent.toml"
    file.write_text(
        'node = "gpu-7"\nservices = ["slurmd.service"]\nib_interval_s = 2\n'
        f'data_dir = "{tmp_path}"\n[trusted_keys]\nbrain-1 = "{KEY}"\n'
    )
    config = load(file, {"node": "gpu-8", "kmsg_facilities": "0, 1", "allow": "link.bounce,service.restart"})
    assert config.node == "gpu-8"
    assert config.services == ("slurmd.service",)
    assert config.ib_interval_s == 2.0
    assert config.data_dir == tmp_path
    assert config.public_keys() == {"brain-1": bytes(32)}
    assert config.kmsg_facilities == (0, 1)
    assert config.allow == ("link.bounce", "service.restart")
    assert load(None, {"job_nan_loss": "true"}).job_nan_loss is True
    assert load(None, {"trusted_keys": f"k={KEY}"}).trusted_keys == {"k": KEY}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('nodes = "x"', "unknown key 'nodes'"),
        ("node = 7", "node must be a text"),
        ('node = "a.b"', "node 'a.b' must be"),
        ('cell = ""', "cell '' must be"),
        ('beat_interval_s = "fast"', "beat_interval_s must be a number"),
        ("beat_interval_s = true", "beat_interval_s must be a number"),
        ("beat_interval_s = 0", "beat_interval_s must be 0.05 or more"),
        ("beat_interval_s = nan", "beat_interval_s must be 0.05 or more"),
        ("beat_interval_s = inf", "beat_interval_s must be 0.05 or more"),
        ("spool_max_events = 1.5", "spool_max_events must be a whole number"),
        ('job_nan_loss = "yes"', "job_nan_loss must be a true or false"),
        ("job_nan_loss = 1", "job_nan_loss must be a true or false"),
        ("disk_full_percent = -1", "disk_full_percent must be 0 or more"),
        ('services = "sshd"', "services must be a list of texts"),
        ("services = [1]", "services must be a list of texts"),
        ("kmsg_facilities = [true]", "kmsg_facilities must be a list of whole numbers"),
        ('allow = ["shell"]', "unknown action 'shell'"),
        ('trusted_keys = {a = "AAAA"}', "trusted_keys.a must be the base64"),
        ('trusted_keys = {a = "%%%%"}', "trusted_keys.a must be the base64"),
        ('nats_url = ""', "nats_url must name at least one server"),
        ('job_id_pattern = "("', "job_id_pattern must be a regular expression"),
        ('job_id_pattern = "x"', "job_id_pattern must be a regular expression with a group"),
        ("node = ", "not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, says: str) -> None:
    """The message names the file, the key and what is wanted."""
    file = tmp_path / "agent.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert says in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_missing_file_and_a_bad_override_are_named(tmp_path: Path) -> None:
    """So are a file that is not there and a key on the command line."""
    with pytest.raises(ConfigError, match=r"gone\.toml: cannot be read"):
        load(tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match="command line: unknown key 'nod'"):
        load(None, {"nod": "x"})
    with pytest.raises(ConfigError, match="command line: nvml_interval_s must be a number, not 'soon'"):
        load(None, {"nvml_interval_s": "soon"})


def test_every_option_is_described() -> None:
    """The documentation has a row with a sentence for every field."""
    assert [row.name for row in describe()] == [item.name for item in dataclasses.fields(AgentConfig)]
    assert all(row.summary and row.type for row in describe())


def test_the_example_is_valid_and_says_the_defaults() -> None:
    """deploy/agent.toml can be installed as it stands, and what it comments out are keys that exist."""
    example = Path(__file__).parents[2] / "deploy" / "agent.toml"
    config = load(example)
    assert config.allow == AgentConfig().allow
    offered = re.findall(r"^#? ?([a-z_]+) = ", example.read_text(), re.MULTILINE)
    assert set(offered) <= {item.name for item in dataclasses.fields(AgentConfig)}
