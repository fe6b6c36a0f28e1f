"""The agent's configuration: what is wrong is reported with file, line and key."""

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent import sources
from agent.collectors import RARE
from agent.collectors.joblog import JobLogOptions
from agent.collectors.service import ServiceCollector
from agent.config import AgentConfig
from agent.config_file import groups, load
from agent.contract.errors import ConfigError
from agent.options import Option, declared, option
from agent.sources.infiniband import InfinibandSourceOptions
from agent.sources.kmsg import KmsgSourceOptions

KEY = "A" * 43 + "="


def test_defaults_are_safe() -> None:
    """Without a file the agent may only look and collect evidence, and believes only the kernel."""
    config = load(None)
    assert config.allow == ("agent.look", "evidence.collect")
    assert config.options(KmsgSourceOptions).kmsg_facilities == (0,)
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
    assert config.options(InfinibandSourceOptions).ib_interval_s == 2.0
    assert config.data_dir == tmp_path
    assert config.public_keys() == {"brain-1": bytes(32)}
    assert config.options(KmsgSourceOptions).kmsg_facilities == (0, 1)
    assert config.allow == ("link.bounce", "service.restart")
    assert load(None, {"job_nan_loss": "true"}).options(JobLogOptions).job_nan_loss is True
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
        ("beat_interval_s = 600", "beat_interval_s must be 60 or less, not 600"),
        ("amd_interval_s = 1e12", "amd_interval_s must be less than 1e+12, not 1000000000000.0"),
        # In another unit, or a slip: asked without a pause, over a bus that all interfaces wait for.
        ("optics_interval_s = 0.6", "optics_interval_s must be 10 or more, or 0 for off, not 0.6"),
        ("nvme_interval_s = 5", "nvme_interval_s must be 10 or more, or 0 for off, not 5"),
        ("nvme_interval_s = 86400", "nvme_interval_s must be 3600 or less, or 0 for off, not 86400"),
        ("ascend_interval_s = 0.03", "ascend_interval_s must be 5 or more, or 0 for off, not 0.03"),
        ("amd_interval_s = 0.01", "amd_interval_s must be 0.5 or more, or 0 for off, not 0.01"),
        # It would be looked for in the folder in which the agent was started, and left out.
        ('npu_smi = "npu-smi"', "npu_smi must be an absolute path, not 'npu-smi'"),
        ('hccn_tool = "bin/hccn_tool"', "hccn_tool must be an absolute path, not 'bin/hccn_tool'"),
        ('ib_tools = "sbin"', "ib_tools must be an absolute path, not 'sbin'"),
        ("disk_full_percent = 950", "disk_full_percent must be 100 or less, not 950"),
        ('mounts = ["/home", "lustre"]', "mounts must be an absolute path, not 'lustre'"),
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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# a comment\n\nnodes = 1\n", 3),
        ('cell = "a"\n  "node" = 7\n', 2),
        ('node = "a"\n[trusted_keys]\nbrain-1 = 7\n', 2),
        ('node = "a"\n\ntrusted_keys.brain-1 = 7\n', 3),
    ],
)
def test_the_line_is_named(tmp_path: Path, text: str, line: int) -> None:
    """Of the wrong key, or of the table that it is in."""
    file = tmp_path / "agent.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=rf"agent\.toml:{line}: "):
        load(file)


def test_a_missing_file_and_a_bad_override_are_named(tmp_path: Path) -> None:
    """So are a file that is not there and a key on the command line."""
    with pytest.raises(ConfigError, match=r"gone\.toml: cannot be read"):
        load(tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match="command line: unknown key 'nod'"):
        load(None, {"nod": "x"})
    with pytest.raises(ConfigError, match="command line: nvml_interval_s must be a number, not 'soon'"):
        load(None, {"nvml_interval_s": "soon"})


def options() -> list[Option]:
    """Every option of the agent."""
    return [option for group in groups() for option in group.options]


def test_every_option_has_a_sentence_and_a_valid_default() -> None:
    """What the documentation shows of it: a meaning, and values that the parser would take from a file."""
    for one in options():
        assert one.doc, one.key
        for value in (one.default, *(() if one.example is None else (one.example,))):
            wrong = one.check(one.key, value) if one.check is not None and value else ""
            assert not wrong
            assert one.least is None or value >= one.least, one.key


def _uncommented(text: str, prefix: str) -> list[str]:
    return re.findall(rf"(?m)^{prefix}([a-z_]+ = .*)$", text)


def test_the_example_shows_every_key_with_its_default(tmp_path: Path) -> None:
    """deploy/agent.toml can be installed as it is; with every comment removed it means the same; its examples are valid."""
    example = Path(__file__).parents[2] / "deploy" / "agent.toml"
    assert load(example) == load(None)
    shown = _uncommented(example.read_text(), "# ")
    assert [line.partition(" = ")[0] for line in shown] == [one.key for one in options()]
    everything = tmp_path / "agent.toml"
    everything.write_text("\n".join(shown))
    config = load(everything, {"node": "n1"})
    for one in options():
        value = (
            getattr(config, one.key)
            if one.key in AgentConfig.__dataclass_fields__
            else config.plugins[one.key]
        )
        assert value == ("n1" if one.key == "node" else one.default), one.key
    for line in _uncommented(example.read_text(), "#   e.g. "):
        everything.write_text(line)
        load(everything)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """An option whose type TOML does not have, and a field that is none."""

    own: complex = 0j
    size: complex = option(0j, "a size")


def test_an_option_of_another_type_is_named() -> None:
    """Whoever declares one learns where, and what is possible."""
    with pytest.raises(
        TypeError, match=r"test_config\.Sizes\.size: an option is one of .*, not <class 'complex'>"
    ):
        list(declared(Sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherClock:
    """Options of a collector that takes a key of another one."""

    clock_offset_s: float = option(1.0, "another offset")


def test_a_key_that_two_parts_declare_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them would silently have the other's value."""
    monkeypatch.setattr(ServiceCollector, "options", (OtherClock,))
    with pytest.raises(
        TypeError,
        match="option clock_offset_s is declared by collector service and by collector clock",
    ):
        list(groups())


def test_values_of_tables_are_not_shared() -> None:
    """Each configuration has a table of its own."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Tables:
        tools: Mapping[str, Any] = option({"a": "/a"}, "tools")

    assert Tables().tools == {"a": "/a"}
    assert Tables().tools is not Tables().tools


@pytest.mark.parametrize(
    ("key", "path", "says"),
    [
        ("root", "/no/such/folder", "root must be the absolute path of a folder, not '/no/such/folder'"),
        ("root", ".", "root must be the absolute path of a folder, not '.'"),
        ("ib_root", "sys/class", "ib_root must be an absolute path, not 'sys/class'"),
    ],
)
def test_an_agent_that_would_watch_nothing_is_refused(key: str, path: str, says: str) -> None:
    """It would start, find no device, and look well."""
    with pytest.raises(ConfigError, match=re.escape(says)):
        load(None, {key: path})


IMPORTED = """
import sys
from pathlib import Path
from agent import app
from agent.collectors.base import CollectorSetup
from agent.collectors import collectors
from agent.config_file import load
from agent.sources import sources
from agent.sources.base import SourceSetup
config = load(Path(sys.argv[1]))
sources(SourceSetup(host=config.host(), config=config))
collectors(CollectorSetup(values=config.plugins))
print(*(name for name in sys.modules if name.startswith(("agent.sources.", "agent.collectors."))))
"""


@pytest.mark.parametrize("key", ["", *RARE])
def test_what_is_rare_is_imported_only_where_it_is_asked_for(tmp_path: Path, key: str) -> None:
    """The agent's memory is a promise: 0.4 MB of it for what most sites leave off."""
    assert RARE.keys() == sources.RARE.keys(), (
        "a collector without its source gets nothing, and the other way round"
    )
    file = tmp_path / "agent.toml"
    value = '"/etc/gpuward/probe-hosts"' if key == "probe_hosts" else "30"
    file.write_text(f'node = "n1"\n{key} = {value}\n' if key else 'node = "n1"\n')
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTED, str(file)], check=True, capture_output=True, text=True, timeout=60
    )
    rare = {f"agent.sources.{one}" for one, _ in sources.RARE.values()}
    rare |= {f"agent.collectors.{one}" for one, _ in RARE.values()}
    wanted = {f"agent.sources.{sources.RARE[key][0]}", f"agent.collectors.{RARE[key][0]}"} if key else set()
    assert rare & set(ran.stdout.split()) == wanted
