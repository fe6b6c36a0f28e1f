"""Rules and runbooks from files: what is read, and the errors for what cannot be read."""

from pathlib import Path

import orjson
import pytest

from agent.collectors.gpu import REASONS
from agent.contract.errors import ConfigError, ContractError
from agent.contract.kinds import KINDS
from brain import marked_yaml
from brain.adapters import pack as packs
from brain.core.pack import conditions
from brain.core.pack.compiled import Compiled
from brain.core.pack.shared import rule_named
from brain.core.pack.spec import Mode, ModeSetting, Place, Priority, Settings
from tests.shipped import OURS, scan, shipped_pack

SYMPTOM = """\
symptoms:
  lost:
    scope: gpu
    summary: a GPU is lost
    on: [{kind: gpu.lost}]
    clear: [{kind: gpu.returned}]
"""
RULE = """\
rules:
  gpu-lost:
    scope: gpu
    when: {symptom: lost}
    severity: P1
    because: NVML says so
    runbook: look
    knowledge:
      cause: {en: gone, zh: 丢失}
      todo: {en: look, zh: 查看}
    examples:
      - name: lost
        given: [{event: gpu.lost, component: "gpu/0000:3b:00", data: {reason: lost}}]
        expect: {incident: gpu-lost}
      - name: back
        given: [{event: gpu.returned, component: "gpu/0000:3b:00", data: {by: nvml}}]
        expect: {nothing: true}
"""
RUNBOOK = """\
summary: Look.
rungs:
  - name: evidence
    do: evidence.collect
    params: {component: $component}
"""


def write(folder: Path, rules: str = SYMPTOM + RULE, runbook: str = RUNBOOK) -> tuple[Path, Path]:
    """A small pack on disk."""
    for name, file, text in (("rules", "gpu.yaml", rules), ("runbooks", "look.yaml", runbook)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / file).write_text(text, encoding="utf-8")
    return folder / "rules", folder / "runbooks"


def test_a_pack_is_read(tmp_path: Path) -> None:
    """Names come from the keys and the file name; `on` is a key, not a boolean; defaults are filled in."""
    pack = packs.load(*write(tmp_path))
    assert [symptom.name for symptom in pack.symptoms] == ["lost"]
    assert [match.kind for match in pack.symptoms[0].on] == ["gpu.lost"]
    assert pack.rules[0].severity is Priority.P1
    assert pack.rules[0].resolve_delay_s == 30
    assert [(book.name, book.at_most) for book in pack.runbooks] == [("look", Mode.AUTO)]


def test_the_version_is_that_of_the_content(tmp_path: Path) -> None:
    """The same content has the same version, in whatever files; any change gives another one."""
    one = packs.load(*write(tmp_path))
    assert packs.load(*write(tmp_path, "# a comment\n" + SYMPTOM + RULE)).version == one.version
    assert packs.load(*write(tmp_path, (SYMPTOM + RULE).replace("P1", "P2"))).version != one.version
    assert packs.load(*write(tmp_path), places={"n1": Place(leaf="l1")}).version != one.version


def test_a_pack_travels_as_json(tmp_path: Path) -> None:
    """dump → JSON → parse gives the same pack; anything else raises ContractError."""
    settings = Settings(modes=(ModeSetting(mode=Mode.APPROVE, nodes="n*"),), disruptive_runs=7)
    for pack in (
        packs.load(*write(tmp_path), settings, {"n1": Place(leaf="l1", rack="r1")}),
        packs.load(*OURS),
    ):
        assert packs.parse(orjson.loads(orjson.dumps(packs.dump(pack)))) == pack
    wrong: tuple[object, ...] = (
        {},
        [],
        {**packs.dump(pack), "more": 1},
        {**packs.dump(pack), "rules": [{}]},
        2**70,
    )
    for broken in wrong:
        with pytest.raises(ContractError, match="not a pack"):
            packs.parse(broken)


# (what is replaced, by what, what the message says). Lines are those of SYMPTOM + RULE, or of RUNBOOK.
BAD_RULES: tuple[tuple[str, str, str], ...] = (
    (
        "severity: P1",
        "severity: P9",
        "rules/gpu.yaml:11: rules.gpu-lost.severity: must be 'P0', 'P1', 'P2' or 'P3'",
    ),
    (
        "severity: P1",
        "serverity: P1",
        "rules/gpu.yaml:11: rules.gpu-lost.serverity: unknown key (have: name, scope",
    ),
    ("    because: NVML says so\n", "", "rules/gpu.yaml:8: rules.gpu-lost.because: is missing"),
    ("because: NVML says so", "because: [a]", "rules.gpu-lost.because: must be text, not a list"),
    (
        "because: NVML says so",
        "because: yes\n    resolve_delay_s: no",
        ":13: rules.gpu-lost.resolve_delay_s: must be a number, not 'no'",
    ),
    ("because: NVML says so", "because: 12", ":12: rules.gpu-lost.because: must be text, not 12"),
    ("zh: 丢失", "fr: perdu", "gpu.yaml:15: rules.gpu-lost.knowledge.cause.fr: unknown key (have: en, zh)"),
    ("zh: 丢失", "fr: perdu", "gpu.yaml:15: rules.gpu-lost.knowledge.cause.zh: is missing"),
    (
        "data: {reason: lost}",
        "data: {reason: [lost]}",
        "given.0.data.reason: must be text, a number, true or false",
    ),
    (
        "{incident: gpu-lost}",
        "{incidents: many}",
        "rules.gpu-lost.examples.0.expect.incidents: must be a whole number",
    ),
    ("{nothing: true}", "{nothing: yes}", "examples.1.expect.nothing: must be true or false, not 'yes'"),
    ("scope: gpu\n    when", "name: x\n    scope: gpu\n    when", "rules.gpu-lost.name: unknown key"),
    (
        "    severity: P1",
        "    severity: P1\n    severity: P2",
        ":12: rules.gpu-lost.severity: occurs twice, first in line 11",
    ),
    ("rules:\n", "ruels:\n", "rules/gpu.yaml:7: ruels: unknown key (have: symptoms, rules, overrides)"),
    ("rules:\n", "rules: [1]\nmore:\n", "rules/gpu.yaml:7: rules: must be a mapping of name to body"),
    ("    when: {symptom: lost}", "    when: {symptom: lost", "rules/gpu.yaml:11: is not YAML"),
    ("    when: {symptom: lost}", "\twhen: 1", "rules/gpu.yaml:10: is not YAML"),
    (
        "because: NVML says so",
        "because: !!python/object:os.system x",
        ":12: rules.gpu-lost.because: has the tag",
    ),
    ("because: NVML says so", "because: \x07", "rules/gpu.yaml:1: is not YAML"),
    ("{symptom: lost}", "{[a]: 1}", ":10: rules.gpu-lost.when: has a key in line 10 that is not a string"),
    ("{symptom: lost}", "&a {x: *a}", "is nested too deep"),
    ("runbook: look", f"quiet_s: {2**70}", "rules.gpu-lost: holds a value that JSON cannot"),
)


@pytest.mark.parametrize(("old", "new", "says"), BAD_RULES)
def test_bad_rules(tmp_path: Path, old: str, new: str, says: str) -> None:
    """Each mistake is reported with file, line and key, in plain words."""
    text = SYMPTOM + RULE
    assert old in text
    with pytest.raises(ConfigError) as raised:
        packs.load(*write(tmp_path, text.replace(old, new, 1)))
    assert says in str(raised.value)


BAD_RUNBOOKS: tuple[tuple[str, str, str], ...] = (
    ("summary: Look.\n", "", "runbooks/look.yaml:1: summary: is missing"),
    (
        "do: evidence.collect",
        "doo: x",
        "runbooks/look.yaml:4: rungs.0.doo: unknown key (have: name, do, params",
    ),
    ("do: evidence.collect", "doo: x", "runbooks/look.yaml:3: rungs.0.do: is missing"),
    (
        "params:",
        "disrupts: a bit\n    params:",
        "look.yaml:5: rungs.0.disrupts: must be 'nothing', 'job', 'node' or",
    ),
    ("params:", "retries: 1.5\n    params:", "look.yaml:5: rungs.0.retries: must be a whole number, not 1.5"),
    (
        "params:",
        "verify: {within_s: soon}\n    params:",
        "look.yaml:5: rungs.0.verify.within_s: must be a number, not 'soon'",
    ),
    ("params:", "verify: {within_s: soon}\n    params:", "look.yaml:5: rungs.0.verify.for_s: is missing"),
    (
        "rungs:\n",
        "at_most: brave\nrungs:\n",
        "look.yaml:2: at_most: must be 'observe', 'approve' or 'auto', not 'brave'",
    ),
    (RUNBOOK, "- 1\n", "runbooks/look.yaml:1: must be a mapping"),
    (RUNBOOK, "", "runbooks/look.yaml:1: must be a mapping"),
)


@pytest.mark.parametrize(("old", "new", "says"), BAD_RUNBOOKS)
def test_bad_runbooks(tmp_path: Path, old: str, new: str, says: str) -> None:
    """The same for runbooks."""
    with pytest.raises(ConfigError) as raised:
        packs.load(*write(tmp_path, runbook=RUNBOOK.replace(old, new, 1)))
    assert says in str(raised.value)


def test_all_errors_come_at_once(tmp_path: Path) -> None:
    """Mistakes in several files are all reported, not only the first."""
    rules, runbooks = write(
        tmp_path,
        (SYMPTOM + RULE).replace("severity: P1", "severity: P9").replace("zh: 查看", "zh: 1"),
        RUNBOOK.replace("do:", "does:"),
    )
    with pytest.raises(ConfigError) as raised:
        packs.load(rules, runbooks)
    lines = str(raised.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "rules/gpu.yaml:11",
        "rules/gpu.yaml:16",
        "runbooks/look.yaml:3",
        "runbooks/look.yaml:4",
    ]


@pytest.mark.parametrize(
    "nested", ["[" * 100 + "]" * 100, "[" * 6_000, "- " * 6_000, "{a: " * 900 + "}" * 900]
)
def test_deep_nesting_is_an_error_and_no_crash(tmp_path: Path, nested: str) -> None:
    """Neither the reader in C, which has no limit of its own, nor the one in Python ends the brain."""
    with pytest.raises(ConfigError, match="nested too deep"):
        packs.load(*write(tmp_path, f"symptoms:\n  {nested}\n"))


def test_the_readers_in_c_and_in_python_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own rules are the same with and without libyaml, and so are the lines of all their values."""
    quick = scan(*OURS)
    monkeypatch.setattr(marked_yaml, "_QUICK", None)
    exact = scan(*OURS)
    assert quick.origins == exact.origins
    assert packs.assemble(quick) == packs.assemble(exact)


def test_one_name_is_used_once(tmp_path: Path) -> None:
    """The same rule in two files is an error that names both places."""
    rules, runbooks = write(tmp_path)
    (rules / "more.yaml").write_text(RULE, encoding="utf-8")
    (runbooks / "other.yaml").write_text("name: look\n" + RUNBOOK, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        packs.load(rules, runbooks)
    assert "rules/more.yaml:2: rules.gpu-lost: rule 'gpu-lost' exists already (rules/gpu.yaml:8)" in str(
        raised.value
    )
    assert "runbooks/other.yaml:1: runbook 'look' exists already (runbooks/look.yaml:1)" in str(raised.value)


def test_rules_in_a_folder_below_are_not_passed_over(tmp_path: Path) -> None:
    """They would never fire. Nothing is said of the vendor's catalogue, and of the hidden folders of a mounted ConfigMap."""
    rules, runbooks = write(tmp_path)
    for name in ("catalog", "..data", "site"):
        (rules / name).mkdir()
        (rules / name / "more.yaml").write_text("rules: {}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        packs.load(rules, runbooks)
    assert str(raised.value) == "rules/site/more.yaml:1: move it to rules/: folders below are not read"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing folder, a file that is not UTF-8, and a wrong ending are reported too."""
    rules, _ = write(tmp_path)
    (rules / "latin.yaml").write_bytes(b"# fine\nsymptoms: {a: \xff}\n")
    (rules / "late.yml").write_text("", encoding="utf-8")
    (rules / "empty.yaml").write_text("# nothing yet\n", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        packs.load(rules, tmp_path / "nowhere")
    assert str(raised.value).splitlines() == [
        "rules/late.yml:1: name it .yaml: .yml is not read",
        "rules/latin.yaml:2: is not UTF-8 text",
        f"{tmp_path / 'nowhere'}: there is no such folder",
    ]


@pytest.mark.parametrize("reason", REASONS)
def test_however_a_gpu_is_lost_somebody_hears_of_it(reason: str) -> None:
    """Each reason that the agent gives feeds a symptom; a new one gets its own or joins one."""
    wanted = [
        match.where.get("reason")
        for one in shipped_pack().symptoms
        for match in one.on
        if match.kind == "gpu.lost"
    ]
    assert any(reason == want or (isinstance(want, list | tuple) and reason in want) for want in wanted)


def test_every_kind_of_event_feeds_a_rule_or_says_why_not() -> None:
    """No fact is collected for nobody: a new kind gets a symptom, or `no_rule` with the reason."""
    symptoms = shipped_pack().symptoms
    fed = {match.kind for symptom in symptoms for match in (*symptom.on, *symptom.clear)}
    unread = {name for name, kind in KINDS.items() if name not in fed and not kind.no_rule}
    assert not unread, (
        f"rules/*.yaml: a symptom of {', '.join(sorted(unread))}; or `no_rule` where it is declared"
    )
    both = {name for name, kind in KINDS.items() if name in fed and kind.no_rule}
    assert not both, f"`no_rule` is out of date: {', '.join(sorted(both))}"


# Values that no symptom starts with or ends by, although symptoms read others of the same field: kind, field -> value -> why.
UNREAD_VALUES: dict[tuple[str, str], dict[str, str]] = {
    ("fabricmanager.error", "what"): dict.fromkeys(
        ("nvswitch_non_fatal", "error"),
        "evidence: the switch goes on, and traffic that fails shows on its GPUs",
    ),
    ("gpu.setting", "what"): dict.fromkeys(
        ("mig", "mig_pending", "power_limit", "driver", "vbios"),
        "a person's choice: evidence of what changed",
    ),
    ("job.nccl_error", "what"): dict.fromkeys(
        ("warning", "system_error", "remote_error", "ib_error"), "a job's word: evidence of what nodes tell"
    ),
    ("nvml.refused", "what"): {
        "other_version": "driver_mismatch reads the kernel's line about each such try, and waits while people upgrade"
    },
    ("node.pressure", "resource"): {"io": "a busy filesystem is no fault of the node"},
    ("cpu.machine_check", "class"): dict.fromkeys(
        ("corrected", "logged", "deferred"), "nothing was lost yet"
    ),
    ("node.oom_kill", "scope"): {"cgroup": "a job that reached its own limit"},
    ("disk.error", "what"): {
        "io_error": "a medium or hardware error stands beside it where the disk is at fault",
        "timeout": "the kernel tries again; what does not come back is offline or lost",
        "controller_down": "the kernel resets it; it is lost when that fails",
        "ata_error": "the kernel tries again",
        "path_failed": "others may be left; no_path when none is",
        "beyond_end": "an error of who reads, not of the disk",
    },
}


def test_every_value_that_is_told_apart_feeds_a_rule_or_says_why_not() -> None:
    """Where symptoms distinguish a field's values, a value that none of them reads would open nothing, and nobody would know."""
    matches = [match for one in shipped_pack().symptoms for match in (*one.on, *one.clear)]
    unread: dict[tuple[str, str], set[str]] = {}
    for kind in KINDS.values():
        for field in kind.fields:
            wants = [match.where.get(field.name) for match in matches if match.kind == kind.name]
            if any(want is not None for want in wants):
                left = {
                    value
                    for value in field.values
                    if not any(want is None or conditions.test(want, value) for want in wants)
                }
                unread |= {(kind.name, field.name): left} if left else {}
    assert unread == {key: set(why) for key, why in UNREAD_VALUES.items()}, (
        "rules/*.yaml: a symptom that reads the value, or UNREAD_VALUES with the reason"
    )


def test_each_rule_is_found_by_its_name() -> None:
    """Those that people wrote, also where the name begins as that of a generated one, and the generated ones."""
    pack = shipped_pack()
    names = [rule.name for rule in pack.rules]
    assert "shared-fs-full" in names
    generated = [name for name in Compiled(pack).rules if name not in names]
    assert len(generated) > 100
    for name in (*names, *generated):
        found = rule_named(pack, name)
        assert found is not None
        assert found.name == name
    assert rule_named(pack, "shared-nothing-leaf") is None
