"""What stands on the log in English is told in Chinese: nothing is missing, nothing is taken for something else."""

import functools
import re
from collections.abc import Iterator, Mapping

import pytest

from agent.contract.commands import Outcome
from agent.contract.coverage import Coverage
from agent.shared.words import id_of, read, values_of
from brain import sentences
from brain.console.speech import in_language, told, told_note, told_plan
from brain.console.words import Words
from brain.console_config import Role
from brain.core.state import IncidentState, RunState
from docs import sentences as spoken
from simulations.drills import DRILLS
from tests.simulations.stories import played

spoken_in_code = functools.cache(spoken.sentences)  # not at import: each worker imports it
CHINESE = read(sentences.FOLDER / "zh")
# What stands in a slot as the log calls it -> the console's own words for it
WORDS: dict[str, dict[str, str]] = {
    "state": {one.value: f"state-{one.value}" for one in IncidentState}
    | {one.value: f"run-{one.value}" for one in RunState},
    "role": {one.value: f"role-{one.value}" for one in Role},
    "what": dict.fromkeys(("open", "repeat", "update", "ack", "resolve"), ""),
    "how": {"local-token": ""},
    "outcome": {one.value: f"outcome-{one.value}" for one in Outcome}
    | {"withdrawn": "outcome-withdrawn", "done": ""},
    "count": {"no": ""},
    "power": {"on": "", "off": ""},
    "alone": {"paged": ""},
}
UNITS = {"count-second", "count-minute", "count-hour", "count-day"}
# What stays in every language: names, keys, commands
NAMES = re.compile(
    r"`[^`]*`|'[^']*'|\"[^\"]*\"|gpuward \w+ \S+( --\w+ \S+)*|[\w.-]*[\d_./:@=-][\w./:@=-]*|\b[A-Z][A-Za-z]*\b|"
    r"\b(dcgmi diag|fabric manager|gpuward)\b"
)
ENGLISH = re.compile(r"[a-z]{2,} [a-z]{2,}")


def forms() -> Iterator[tuple[str, str]]:
    """Each way to say each sentence: (the catalogue's English, this one)."""
    said, _ = spoken_in_code()
    for one in said:
        for form in (one.english, *one.also):
            yield one.english, form


def test_every_sentence_of_the_code_has_its_chinese() -> None:
    """A new one, or one that was changed by a word, is named here until its Chinese stands in brain/sentences/zh."""
    said, counted_words = spoken_in_code()
    ids = {id_of(one.english): one.english for one in said}
    assert {id_: english for id_, english in ids.items() if id_ not in CHINESE} == {}
    counted = {f"count-{id_of(one)}" for one in counted_words}
    assert sorted(counted - set(CHINESE)) == []
    words = {f"word-{slot}-{value}" for slot, values in WORDS.items() for value in values}
    assert sorted(words - set(CHINESE)) == []
    assert sorted(set(CHINESE) - set(ids) - counted - UNITS - words) == []
    wrong = {
        id_: CHINESE[id_]
        for id_, english in ids.items()
        if not values_of(CHINESE[id_]) <= set(re.findall(r"\{(\w+)\}", english))
    }
    assert wrong == {}


def test_a_state_is_told_by_the_word_that_the_pages_have_for_it() -> None:
    """In a sentence as in a mark beside it."""
    pages = Words("zh")
    for slot, values in WORDS.items():
        for value, key in values.items():
            assert not key or CHINESE[f"word-{slot}-{value}"] == pages(key), key


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("inc-1.r1 waits for no approval: it is succeeded", "inc-1.r1 不在等待批准：其状态为成功"),
        ("inc-1 has no run: it is needs_human", "inc-1 没有运行：其状态为需要人工"),
        ("open to oncall: x", "新故障，发给 oncall：x"),
        (
            "root logged in with a browser (administrator, local token)",
            "root 用浏览器登录（管理员，本机令牌）",
        ),
        ("ann.service did not start: it is failed", "ann.service 没有启动：它为 failed"),
    ],
)
def test_states_and_roles_within_a_sentence(english: str, chinese: str) -> None:
    """What is none of ours stands as it is."""
    assert sentences.told(english, "zh") == chinese


def test_the_catalogue_is_that_of_the_code() -> None:
    """`make docs` writes it."""
    written = (sentences.FOLDER / "english.json").read_text(encoding="utf-8")
    assert written == spoken.catalogue()


def test_no_text_stands_twice() -> None:
    """The second would be read, and nobody would know."""
    keys = [
        line.partition(" = ")[0]
        for file in sorted((sentences.FOLDER / "zh").glob("*.ftl"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if " = " in line and not line.startswith("#")
    ]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []


def filled(slot: str, text: str, given: Mapping[str, str]) -> str:
    """With these values."""
    return re.sub(slot, lambda found: given[found[1]], text)


def test_no_sentence_is_taken_for_another() -> None:
    """Each is told as itself, whatever names stand in it; what is told only now and then (a slot behind a slot) is left out."""
    wrong = {}
    for english, form in forms():
        names = re.findall(r"\{(\w+)\}", form)
        rare = set(re.findall(r"(?<=\})\{(\w+)\}", form))
        given = {name: "" if name in rare else f"<{name}>" for name in names}
        text = filled(r"\{(\w+)\}", form, given)
        wanted = filled(r"\{ \$(\w+) \}", CHINESE[id_of(english)], given)
        if (told := sentences.told(text, "zh")) != wanted:
            wrong[form] = (told, wanted)
    assert wrong == {}


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("ann: closed", "ann：已关闭"),
        ("ann: a new cable is in", "ann: a new cable is in"),
        ("nothing listens there (Connection refused)", "那里没有程序在监听（Connection refused）"),
        (
            "log: http://pager.example: nothing listens there (Connection refused)",
            "log：http://pager.example：那里没有程序在监听（Connection refused）",
        ),
        ("sim-03 has looked again: no conditions are present", "sim-03 已重新检查：0 个异常状态"),
        ("paged", "已呼叫"),
        (
            "restart: refused: sim-03 is off: bmc.power_on switches it on",
            "restart：被拒绝：sim-03 已断电：由 bmc.power_on 上电",
        ),
        (
            "look: ok: power on; fans and power supplies are fine; no new events",
            "look：成功：电源 开；风扇和电源模块正常；没有新事件",
        ),
        ("What was done: largest directories: done.", "已执行：largest directories：已完成。"),
        (
            "gpu_lost_to_job at gpu/n1/0000:1b:00: RuntimeError: CUDA error: DEVICE_REMOVED on 0000:1b:00",
            "gpu/n1/0000:1b:00 上的 gpu_lost_to_job：RuntimeError: CUDA error: DEVICE_REMOVED on 0000:1b:00",
        ),
        ("eth0: link: refused: by the peer", "eth0: link: refused: by the peer"),
        (
            "reset waits: 1 disruptive run in rack/r1, at most 1 at once (gate budget)",
            "reset 等待：rack/r1 中有 1 个有影响业务的运行，同时最多 1 个（闸门 budget）",
        ),
        ("ann holds node/n1: new cable", "ann 暂停了 node/n1：new cable"),
        ("ann and ben hold node/n1: new cable", "ann and ben 暂停了 node/n1：new cable"),
        (
            "gpu-lost is in approve mode; the approval of ann is void: protected job 42 runs there now",
            "gpu-lost 处于 approve 模式；ann 的批准已失效：受保护的作业 42 现在在那里运行",
        ),
        (
            "n1 gets no new jobs (drained; waiting for 42).",
            "n1 不再接收新作业（已排空；等待 42）。",
        ),
        ("link/n1/eth0: Connection refused", "link/n1/eth0: Connection refused"),
        ("ann holds node/n1: the riser is loose", "ann 暂停了 node/n1：the riser is loose"),
        (
            "/data/brain is below /data, which /etc/fstab names, and nothing is mounted there: mount it (`mount /data`), or take "
            "its line out of /etc/fstab where this brain is to begin without it. Until then this brain begins nothing anew: it "
            "hears of no fault and can do nothing. When that is done, it starts by itself",
            "/data/brain 位于 /data 之下，/etc/fstab 中列有后者，而那里没有挂载任何东西：请挂载（`mount /data`）；"
            "如果此 brain 应当不用它而开始，请从 /etc/fstab 中删除该行。"
            "在此之前此 brain 不会重新开始任何东西：它听不到故障，也无法处理。完成后它会自行启动",
        ),
        ("", ""),
    ],
)
def test_what_is_put_together_is_told_in_parts(english: str, chinese: str) -> None:
    """A sentence within a sentence, a number of things, and what people and programs have said as they said it."""
    assert sentences.told(english, "zh") == chinese
    assert sentences.told(english, "en") == english


def test_a_plan_keeps_what_is_done() -> None:
    """Its numbers, rungs, actions and parameters are the same for everybody: the pages read them."""
    line = (
        "2. drain: scheduler.drain(wait_s=60) (after look) — disrupts node; gates: hold (n1 is not heard); verified by symptoms "
        "gone within 60 s for 30 s"
    )
    with in_language("zh"):
        told = told_plan(line)
        left_out = told_plan("back 1. test, back 2. accept: left out, they test what this plan does not do")
    assert told.startswith(
        "2. drain: scheduler.drain(wait_s=60)（在 look 之后） — 影响该节点；闸门：hold（n1 失去联系）；验证："
    )
    assert left_out == "back 1. test, back 2. accept: 略过，它测试的内容不在此计划中"
    assert told_plan(line) == line


@pytest.mark.parametrize(
    ("line", "chinese"),
    [
        (
            "1. ports: port.check() (after reboot or power cycle) — disrupts nothing",
            "1. ports: port.check()（在 reboot 或 power cycle 之后） — 不影响任何作业",
        ),
        (
            "3. again: scheduler.requeue(job=7) — disrupts job",
            "3. again: scheduler.requeue(job=7) — 影响一个作业",
        ),
        ("1. stop: sm.stop_master() — disrupts fabric", "1. stop: sm.stop_master() — 影响整个网络"),
    ],
)
def test_what_a_rung_disrupts_and_follows_is_no_english(line: str, chinese: str) -> None:
    """`nothing`, `node` and `or` are words of ours, no names."""
    with in_language("zh"):
        assert told_plan(line) == chinese


def test_a_flood_of_words_costs_little() -> None:
    """What a node says can be long, and like many sentences at once: no reading goes back over it."""
    text = "x of y at z is w: " * 100
    assert sentences.told(text, "zh")
    assert sentences.told("a" * 100_000, "zh") == "a" * 100_000


@pytest.mark.parametrize("name", sorted(DRILLS))
def test_what_a_drill_writes_is_told_in_chinese(name: str) -> None:
    """All that somebody reads of it: every note, and what its runs and incidents say of themselves."""
    timeline = played(name).timeline
    texts = {note.text for note in timeline.notes}
    for run in timeline.runs.values():
        texts |= {run.why, *(step.why for step in run.steps), *(step.doing for step in run.steps)}
    for incident in timeline.incidents.values():
        texts |= {incident.waits, incident.clear_why, incident.closed_why}
    foreign = {fact.text for incident in timeline.incidents.values() for fact in incident.evidence}
    foreign |= {
        rung.name
        for run in timeline.runs.values()
        for rung in (*run.runbook.rungs, *run.runbook.return_to_service)
    }
    left = {}
    for text in sorted(texts):
        told = sentences.told(text, "zh")
        for known in sorted(foreign, key=len, reverse=True):
            told = told.replace(known, "")
        if ENGLISH.search(NAMES.sub("", told)):
            left[text] = told
    assert left == {}


def test_why_a_log_is_no_all_clear_is_told_in_chinese_whole() -> None:
    """Its reason, too, and what can be read; the line stays as it was pasted."""
    why = "the log ends within this line"
    seen = Coverage(lines=3, unread=1, first=3, why=why, example="[ 900.0] usb 1-1: new device")
    told = sentences.told(seen.blind, "zh")
    assert "无法读取" in told
    assert "日志在此行中断" in told
    assert not ENGLISH.search(NAMES.sub("", told)), told


def test_what_a_person_has_written_down_stands_as_it_was_written() -> None:
    """`the riser is loose` is like `{scope} is {state}`, and was told half in Chinese."""
    text = "ann: <img src=x> the riser is loose"
    with in_language("zh"):
        assert told_note("operator.note", text) == text
        assert told_note("incident.closed", "no longer seen") == told("no longer seen")
