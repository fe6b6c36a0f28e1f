"""Backtests a folder of kernel logs: reads it once, and judges it with each rule set."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared.words import t
from brain.cli.backtest import facts as timeline_facts
from brain.cli.backtest.facts import TimelineFact
from brain.cli.backtest.folder import Folder, LogFile, looked_at
from brain.cli.backtest.judge import Judge
from brain.cli.backtest.kernel_logs import LineFact, LogOfNode, LogsReader, Progress, on_one_clock
from brain.cli.backtest.outcome import Backtest, BacktestOutcome, Input, When, listed, up, wall
from brain.cli.backtest.rule_sets import RuleSet
from brain.core.inputs import EventSeen, NodeState, PackLoaded
from brain.core.pack.spec import Pack, Place
from brain.core.rehearsal.examples import event_of, patience
from brain.topology.places_file import read_places

# (at, node, where it stands, line or number, what) of the facts of one clock
_Entry = tuple[float, str, str, int, LineFact | TimelineFact]


def files_of(path: Path) -> list[LogFile]:
    """The logs of a folder."""
    return looked_at(path).files


def backtest(
    path: Path,
    rule_sets: Sequence[RuleSet],
    *,
    driver: str = "",
    progress: Progress | None = None,
) -> list[Backtest]:
    """One result for each rule set. ConfigError: there is nothing to read, or topology.yaml or the facts are wrong.

    `progress` is told of the bytes, about, that were read.
    """
    folder = looked_at(path)
    if not folder.files and not folder.facts:
        raise ConfigError(_nothing(path, folder))
    places = read_places(folder.topology) if folder.topology is not None else {}
    counts = Input(kind="folder", files=len(folder.files), unreadable=dict(folder.unreadable))
    reader = LogsReader(counts, driver=driver, names=tuple(places))
    logs: list[LogOfNode] = []
    for file in folder.files:
        logs += reader.read(file.path, file.name, file.node, progress)
    facts = [fact for file in folder.facts for fact in timeline_facts.read(file)]
    counts.facts = len(facts)
    counts.nodes = len({log.node for log in logs} | {fact.node for fact in facts})
    _tell(counts, logs, facts, places)
    return [
        Backtest(
            input=counts,
            rules=one.source,
            version=one.version,
            outcome=_judged(one.pack(places=places), logs, facts),
        )
        for one in rule_sets
    ]


def _nothing(path: Path, folder: Folder) -> str:
    why = (
        f": {listed(f'{name} ({said})' for name, said in folder.unreadable.items())}"
        if folder.unreadable
        else t(": name a folder with a file <node>.log for each node, or a file of `gpuward log export`")
    )
    return t("{path}: there is nothing to read in it{why}", path=path, why=why)


def _tell(
    counts: Input, logs: Sequence[LogOfNode], facts: Sequence[TimelineFact], places: Mapping[str, Place]
) -> None:
    """When it begins and ends, and what whoever reads the outcome must know."""
    dated = on_one_clock(logs)
    begins = [log.begin for log in dated] + [fact.at for fact in facts]
    ends = [log.end for log in dated] + [fact.at for fact in facts]
    if begins:
        counts.since, counts.until = wall(min(begins)), wall(max(ends))
    counts.undated = sorted({log.node for log in logs if not log.dated})
    if places and (strange := sorted({log.node for log in logs} - places.keys())):
        counts.remarks.append(t("topology.yaml does not place {strange}", strange=listed(strange)))
    if not places and len({log.node for log in dated}) > 1:
        counts.remarks.append(
            t("there is no topology.yaml: a cause that a leaf or a rack shares cannot be placed there")
        )


def _judged(pack: Pack, logs: Sequence[LogOfNode], facts: Sequence[TimelineFact]) -> BacktestOutcome:
    dated = on_one_clock(logs)
    found = BacktestOutcome()
    if dated or facts:
        entries: list[_Entry] = [
            (fact.at, fact.node, fact.file, fact.line, fact) for log in dated for fact in log.facts
        ]
        entries += [(fact.at, fact.node, "", number, fact) for number, fact in enumerate(facts)]
        ends = [log.end for log in dated] + [fact.at for fact in facts]
        begins = [log.begin for log in dated] + [fact.at for fact in facts]
        nodes = sorted({log.node for log in dated} | {fact.node for fact in facts})
        found.add(_one_clock(pack, nodes, entries, min(begins), max(ends), wall))
    for log in sorted((log for log in logs if not log.dated), key=lambda log: (log.node, log.file)):
        alone: list[_Entry] = [(fact.at, fact.node, fact.file, fact.line, fact) for fact in log.facts]
        found.add(_one_clock(pack, [log.node], alone, log.begin, log.end, up))
    return found


def _one_clock(
    pack: Pack, nodes: Iterable[str], entries: list[_Entry], begin: float, end: float, when: When
) -> BacktestOutcome:
    judge = Judge(observe=True, when=when)
    try:
        judge.feed(PackLoaded(id="pack", pack=pack), begin)
        for node in nodes:  # a share of the fleet counts those that are well, too
            judge.feed(NodeState(id=f"known:{node}", node=node, alive=True), begin)
        for number, (at, node, _, _, what) in enumerate(sorted(entries, key=lambda entry: entry[:4]), 1):
            if what.unsent is None:
                state = NodeState(id=f"fact:{number}", node=node, alive=what.alive, silent_s=what.silent_s)
                judge.feed(state, at)
            else:
                event = event_of(what.unsent, node, what.unsent.age_s, order=number)
                judge.feed(EventSeen(event=event), at)
        judge.run(end + patience(pack))  # what the log's end leaves open lasts
        return judge.outcome()
    finally:
        judge.close()
