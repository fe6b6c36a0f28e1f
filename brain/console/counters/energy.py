"""What the cell's GPUs have used in a time, by tenant: asked of the site's Prometheus, reckoned with plain figures.

What is measured is the card's own energy counter. Whose it is says the label that dcgm-exporter puts beside it (a pod's
namespace, or what a Slurm prolog writes): it knows at each moment who has the card; we know it of ill nodes only (decisions 64
and 78).
"""

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import aiohttp

from agent.contract.errors import ActionError
from agent.contract.inert import inert
from brain.console import shapes, spreadsheet
from brain.console.api.base import TwoLanguagesShape
from brain.console.api.energy_shapes import EnergyShape, TenantEnergyShape
from brain.console.counters.prometheus import PlottedLine, Prometheus
from brain.console_config import PrometheusConfig
from brain.outgoing import Outgoing

STEPS = 48
LEAST_STEP_S = 300.0  # a counter needs some scrapes
MOST_TENANTS = 50
_WHOLE = 0.995  # of the GPUs' time: what is missing is the scrape at each end
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"  # mJ since the driver was loaded
_USE = "DCGM_FI_DEV_GPU_UTIL"  # percent
_MJ_PER_KWH = 3.6e9
_COLUMNS = ("tenant", "kwh", "share_of_measured", "use", "since", "until", "measured_share_of_gpu_time")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyTold:
    """What Prometheus has said, step by step."""

    # tenant -> step -> kWh
    kwh: Mapping[str, Mapping[int, float]]
    # tenant -> sum and number of samples of the use in percent
    use: Mapping[str, tuple[float, float]]
    # step -> GPUs that told their energy; and those of them that are split
    gpus: Mapping[int, float]
    split: int


def steps_of(since: float, until: float) -> tuple[int, float]:
    """Returns (how many steps a time has, how long each is, in whole seconds). They end at `until`, and leave none of it out."""
    number = max(1, min(STEPS, int((until - since) / LEAST_STEP_S)))
    return number, float(max(1, math.ceil((until - since) / number)))


def queries(tenant: str, only: str, step_s: float) -> dict[str, str]:
    """PromQL by what it gives. `tenant`: the label that names one; empty: none does. `only`: a further matcher."""
    matchers = ", ".join(filter(None, ('GPU_I_ID=""', 'vgpu=""', only)))
    split = ", ".join(filter(None, ('GPU_I_ID!=""', only)))
    by, within = (f" by ({tenant})" if tenant else ""), f"[{step_s:.0f}s]"
    return {
        "kwh": f"sum{by} (increase({_ENERGY}{{{matchers}}}{within})) / {_MJ_PER_KWH:g}",
        "used": f"sum{by} (sum_over_time({_USE}{{{matchers}}}{within}))",
        "samples": f"sum{by} (count_over_time({_USE}{{{matchers}}}{within}))",
        "gpus": f"count(count by (UUID) (increase({_ENERGY}{{{matchers}}}{within})))",
        "split": f"count(count by (UUID) (last_over_time({_ENERGY}{{{split}}}{within})))",
    }


class EnergyMeter:
    """Asks one Prometheus; none: it says so."""

    def __init__(self, config: PrometheusConfig | None, way: Outgoing) -> None:
        """`way`: out of the site. ConfigError: a file that the configuration names cannot be used."""
        self._config = config
        self._prometheus = Prometheus(config, way) if config is not None else None

    async def measured(self, since: float, until: float, gpus: int) -> EnergyShape:
        """What `gpus` GPUs have used in a time, in seconds since 1970. What is not answered is told in it."""
        steps, step_s = steps_of(since, until)
        label = self._config.tenant_label if self._config else ""
        only = self._config.only if self._config else ""
        found: dict[str, list[PlottedLine]] = {}
        failed: dict[str, None] = {}
        if self._prometheus is not None and until > since:
            asked = queries(label, only, step_s)
            async with aiohttp.ClientSession() as session:
                answers = await asyncio.gather(
                    *(
                        self._prometheus.lines(session, one, until - (steps - 1) * step_s, until, step_s)
                        for one in asked.values()
                    ),
                    return_exceptions=True,
                )
            for name, answer in zip(asked, answers, strict=True):
                if isinstance(answer, ActionError):
                    failed[str(answer)] = None
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    found[name] = answer
        return reckoned(
            told(found, label),
            configured=self._config is not None,
            label=label,
            since=since,
            until=until,
            gpus=gpus,
            failed=list(failed),
        )


def told(found: Mapping[str, Sequence[PlottedLine]], label: str) -> EnergyTold:
    """What the answers say. A query that was not answered is left out."""
    use: dict[str, tuple[float, float]] = {}
    samples = {line.labels.get(label, ""): sum(line.values.values()) for line in found.get("samples", ())}
    for line in found.get("used", ()):
        tenant = line.labels.get(label, "")
        if samples.get(tenant):
            use[tenant] = (sum(line.values.values()), samples[tenant])
    split = [value for line in found.get("split", ()) for value in line.values.values()]
    return EnergyTold(
        kwh={line.labels.get(label, ""): line.values for line in found.get("kwh", ())},
        use=use,
        gpus={step: value for line in found.get("gpus", ()) for step, value in line.values.items()},
        split=round(max(split, default=0)),
    )


def reckoned(
    said: EnergyTold,
    *,
    configured: bool,
    label: str,
    since: float,
    until: float,
    gpus: int,
    failed: Sequence[str] = (),
) -> EnergyShape:
    """Returns the figures of a time."""
    steps, step_s = steps_of(since, until)
    kwh = sum(sum(values.values()) for values in said.kwh.values())
    rows = sorted(
        (_tenant(name, values, said.use.get(name), kwh, steps) for name, values in said.kwh.items()),
        key=lambda one: (-one.kwh, one.tenant),
    )
    seen = sum(min(said.gpus.get(step, 0.0), float(gpus)) for step in range(steps))
    measured = round(seen / (gpus * steps), 4) if gpus else None
    return EnergyShape(
        configured=configured,
        since=shapes.iso(until - steps * step_s),
        until=shapes.iso(until),
        step_s=step_s,
        kwh=round(kwh, 3),
        use=_use(said.use.values()),
        gpus=gpus,
        measured=measured,
        split=said.split,
        tenants=rows[:MOST_TENANTS],
        more=max(0, len(rows) - MOST_TENANTS),
        failed=list(failed),
        not_known_texts=list(
            _not_known(configured, label, gpus, measured, said.split, max(said.gpus.values(), default=0.0))
        ),
    )


def _tenant(
    name: str, values: Mapping[int, float], use: tuple[float, float] | None, whole: float, steps: int
) -> TenantEnergyShape:
    own = sum(values.values())
    return TenantEnergyShape(
        tenant=inert(name),
        kwh=round(own, 3),
        share=round(own / whole, 4) if whole else 0.0,
        use=_use([use] if use else ()),
        values=[
            round(value, 4) if (value := values.get(step)) is not None else None for step in range(steps)
        ],
    )


def _use(parts: Iterable[tuple[float, float]]) -> float | None:
    known = list(parts)
    number = sum(one for _, one in known)
    return round(sum(used for used, _ in known) / number / 100, 4) if number else None


def _not_known(
    configured: bool, label: str, gpus: int, measured: float | None, split: int, seen: float
) -> Iterator[TwoLanguagesShape]:
    if not configured:
        yield TwoLanguagesShape(
            en="What GPUs have used: no Prometheus is configured that would know it ([console.prometheus] in brain.toml).",
            zh="GPU 用了多少电：没有配置知道此事的 Prometheus（brain.toml 中的 [console.prometheus]）。",
        )
        return
    if not label:
        yield TwoLanguagesShape(
            en="Whose the energy is: brain.toml does not say which label of its series names a tenant (`tenant_label`).",
            zh="电能由谁使用：brain.toml 没有说明其序列的哪个标签是租户（`tenant_label`）。",
        )
    else:
        yield TwoLanguagesShape(
            en="Whose the energy is where the exporter names nobody beside a card, or one of several that share it.",
            zh="导出器没有在卡旁注明租户、或多个租户共用一张卡而只注明其一时，电能由谁使用。",
        )
    if measured is None:
        yield TwoLanguagesShape(
            en="How much of the energy was measured: no node has told how many GPUs it has.",
            zh="测得了多少电能：没有节点上报过它有多少 GPU。",
        )
    elif measured < _WHOLE:
        share = f"{100 * (1 - measured):.1f} %"
        yield TwoLanguagesShape(
            en=f"What GPUs have used in {share} of their time: Prometheus has nothing of it.",
            zh=f"GPU 在 {share} 的时间里用了多少电：Prometheus 没有相应数据。",
        )
    if gpus and seen > gpus + 0.5:
        yield TwoLanguagesShape(
            en=f"Which of the {seen:.0f} GPUs that Prometheus knows are this cell's {gpus}: `only` in brain.toml can say it.",
            zh=f"Prometheus 所知的 {seen:.0f} 块 GPU 中哪些属于本 cell 的 {gpus} 块：可用 brain.toml 的 `only` 说明。",
        )
    if split:
        yield TwoLanguagesShape(
            en=f"Whose the energy of {split} GPUs is that are split (MIG, vGPU): it is measured of a whole card only.",
            zh=f"{split} 块被切分的 GPU（MIG、vGPU）的电能由谁使用：只能按整卡测量。",
        )
    yield TwoLanguagesShape(
        en="What the rest of a node uses (processors, memory, fans, network): cards measure themselves alone.",
        zh="节点其余部分（处理器、内存、风扇、网络）用了多少电：卡只测量自身。",
    )


def table(found: EnergyShape) -> bytes:
    """Returns a line for each tenant (RFC 4180). Nothing in it is a formula to a spreadsheet."""
    measured = "" if found.measured is None else f"{found.measured:.4f}"
    rows = (
        (
            spreadsheet.cell(one.tenant),
            f"{one.kwh:.3f}",
            f"{one.share:.4f}",
            "" if one.use is None else f"{one.use:.4f}",
            found.since or "",
            found.until or "",
            measured,
        )
        for one in found.tenants
    )
    return spreadsheet.table(_COLUMNS, rows)
