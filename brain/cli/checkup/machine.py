"""The brain's machine: configuration, rules, modes of files, disk, clock."""

import itertools
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent.contract.errors import ConfigError
from agent.shared import kernel_clock, unit_start
from agent.shared.unit_start import UnitStart
from agent.shared.words import many, t
from brain.adapters import pack as packs
from brain.cli import check
from brain.cli.checkup.installation import Installation
from brain.cli.checkup.lines import HealthLine, fail, ok, some, unchecked, warn
from brain.cli.checkup.secrets import secret_files
from brain.config import BrainConfig
from brain.core.operators import scopes

LEAST_FREE_BYTES = 256 * 1024**2
LEAST_FREE_INODES = 0.05  # of all
OFF_S = 0.5  # as the agent's default for a node's clock (agent/collectors/clock.py)
_GIB = 1024**3
_MOST_FILES = 2000  # of rules: some tens
_MOST_FOLDERS = 1000  # of a NATS server's store: some tens


def configuration(found: Installation) -> Iterator[HealthLine]:
    """The file can be read (else there is no installation to look at), and so can what it names."""
    name = "configuration"
    for text in found.warnings:
        yield warn(name, text, t("use the new name: the old one is read until the version that it says"))
    try:
        places = found.config.places()
    except ConfigError as error:
        yield fail(name, str(error), t("correct the topology file"))
        return
    known = found.brain and [str(node["name"]) for node in found.brain.nodes]
    for window in found.config.settings.maintenance:
        if known and window.until > found.now and (wrong := scopes.mistake(window.scope, known, places)):
            yield warn(
                name,
                t("the maintenance window ({why}) holds for nothing: {wrong}", why=window.why, wrong=wrong),
                t("correct its scope in brain.toml"),
            )
    of_places = t(", {places} of nodes", places=many(len(places), "place")) if places else ""
    yield ok(
        name,
        t(
            "{file}: cell {cell}{of_places}",
            file=found.file or t("no file, so defaults"),
            cell=found.config.cell,
            of_places=of_places,
        ),
    )


def rules(found: Installation) -> Iterator[HealthLine]:
    """As `gpuward check`."""
    config, name = found.config, "rules"
    report = check.examine(config.rules_dir, config.runbooks_dir)
    again = f"gpuward check --rules {config.rules_dir} --runbooks {config.runbooks_dir}"
    if report.faults:
        yield fail(name, f"{many(len(report.faults), 'error')}: {report.faults[0]}", again)
        return
    both = t(
        "{rules} and {runbooks}", rules=many(report.rules, "rule"), runbooks=many(report.runbooks, "runbook")
    )
    if report.warnings:
        yield warn(name, f"{many(len(report.warnings), 'old name')}: {report.warnings[0].text}", again)
    in_force = found.brain.status["pack"] if found.brain else ""
    if in_force and in_force != _version(config):
        yield warn(
            name,
            t("{both} in the files, and others are in force ({in_force})", both=both, in_force=in_force),
            t(
                "changed rules: `systemctl reload gpuward`; a changed brain.toml: `systemctl restart gpuward`; where another "
                "brain leads, give it the same files and settings"
            ),
        )
        return
    yield ok(
        name,
        t(
            "{both}, {examples} passed{what}",
            both=both,
            examples=many(report.examples_passed, "example"),
            what=t(", in force") if in_force else "",
        ),
    )


def _version(config: BrainConfig) -> str:
    """Of what the files of this machine would put into force."""
    sources = packs.scan(config.rules_dir, config.runbooks_dir)
    try:
        return packs.assemble(sources, config.site_settings(), config.places()).version
    except ConfigError:
        return ""  # the topology file: `configuration` says so


def files(found: Installation) -> Iterator[HealthLine]:
    """Nobody but the brain's user reads secrets, and it can read all of them; nobody else writes what it believes."""
    config, name = found.config, "files"
    try:
        owner = config.data_dir.stat()
    except OSError as error:
        yield unchecked(
            name,
            t("data_dir {data_dir}: {strerror}", data_dir=config.data_dir, strerror=error.strerror),
            t("the brain makes it at its start"),
        )
        return
    before = 0
    for line in _wrong(found, owner):
        before += 1
        yield line
    if not before:
        yield ok(
            name,
            t(
                "data_dir {data_dir} and all secrets are for {st_uid} alone",
                data_dir=config.data_dir,
                st_uid=_user(owner.st_uid),
            ),
        )


def _wrong(found: Installation, owner: os.stat_result) -> Iterator[HealthLine]:
    config, name = found.config, "files"
    if owner.st_mode & 0o007:
        yield warn(
            name,
            t("data_dir {data_dir} is open to everybody", data_dir=config.data_dir),
            f"chmod o-rwx {config.data_dir}",
        )
    for key, path in secret_files(config):
        try:
            seen = path.stat()
        except FileNotFoundError:
            if key:
                yield fail(
                    name,
                    t("{key}: {path} is not there", key=key, path=path),
                    t("put it there, or take the key out"),
                )
            continue
        except OSError as error:
            yield unchecked(
                name,
                f"{path}: {error.strerror}",
                t("run this as root or as {st_uid}", st_uid=_user(owner.st_uid)),
            )
            continue
        laid_by = path.lstat().st_uid
        if laid_by not in (
            0,
            seen.st_uid,
        ):  # whoever did as the lines below say would give away what it leads to
            yield fail(
                name,
                t(
                    "{path} is a link, of {laid_by}, to a file of {st_uid}",
                    path=path,
                    laid_by=_user(laid_by),
                    st_uid=_user(seen.st_uid),
                ),
                t("look who laid it there, and remove the link"),
            )
        elif seen.st_mode & 0o027:
            yield fail(
                name,
                t(
                    "{path} is a secret and has mode {s_imode}",
                    path=path,
                    s_imode=f"{stat.S_IMODE(seen.st_mode):04o}",
                ),
                f"chmod 0600 {path}",
            )
        elif not _readable(seen, owner.st_uid):
            yield fail(
                name,
                t(
                    "{path} belongs to {st_uid}: the brain's user {st_uid2} cannot read it",
                    path=path,
                    st_uid=_user(seen.st_uid),
                    st_uid2=_user(owner.st_uid),
                ),
                f"chown {_user(owner.st_uid)} {path}",
            )
        elif seen.st_uid not in (0, owner.st_uid):
            yield fail(
                name,
                t(
                    "{path} is a secret and belongs to {st_uid}, who is neither root nor the brain's user {st_uid2}",
                    path=path,
                    st_uid=_user(seen.st_uid),
                    st_uid2=_user(owner.st_uid),
                ),
                t("look who has had it; then chown {st_uid} {path}", st_uid=_user(owner.st_uid), path=path),
            )
    for place in _believed(found):
        try:
            seen = place.stat()
        except OSError:
            continue  # `configuration` and `rules` say so
        if seen.st_mode & 0o002:
            yield fail(
                name,
                t("{place} can be changed by everybody", place=place),
                f"chmod o-w {place}",
            )
        elif seen.st_uid not in (0, owner.st_uid):
            yield warn(
                name,
                t(
                    "{place} can be changed by {user}, who is neither root nor the brain's user {brain}",
                    place=place,
                    user=_user(seen.st_uid),
                    brain=_user(owner.st_uid),
                ),
                t("where that is not meant: chown root {place}", place=place),
            )


def _believed(found: Installation) -> Iterator[Path]:
    """What says what is done to nodes: the configuration, and the folders of rules and runbooks with all that lies there."""
    if found.file:
        yield found.file
    for folder in (found.config.rules_dir, found.config.runbooks_dir):
        yield folder
        yield from itertools.islice(sorted(folder.rglob("*")), _MOST_FILES)


def _readable(seen: os.stat_result, uid: int) -> bool:
    """May the user with this id read it?"""
    if uid in (0, seen.st_uid):
        return True
    try:
        user = pwd.getpwuid(uid)
        groups = os.getgrouplist(user.pw_name, user.pw_gid)
    except KeyError:
        groups = []
    return bool(seen.st_gid in groups and seen.st_mode & 0o040)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def disk(found: Installation) -> Iterator[HealthLine]:
    """There is space for what the brain keeps, and for all that the embedded server may keep."""
    config = found.config
    folders = [config.data_dir]
    if config.embedded and config.nats.embedded.store is not None:
        folders.append(config.nats.embedded.store)
    for folder in folders:
        yield _space(found, folder)


def _space(found: Installation, folder: Path) -> HealthLine:
    name, config = "disk", found.config
    try:
        space = os.statvfs(folder)
    except OSError as error:
        return unchecked(name, f"{folder}: {error.strerror}")
    if space.f_flag & os.ST_RDONLY:
        return fail(
            name,
            t("{folder} can only be read", folder=folder),
            t("see `dmesg` for errors of its file system, mend it, and mount it for writing"),
        )
    free = space.f_bavail * space.f_frsize
    if free < LEAST_FREE_BYTES:
        return fail(
            name,
            t("{folder}: {free} MiB free", folder=folder, free=free // 1024**2),
            t("make room: without it nothing is recorded"),
        )
    if space.f_files and space.f_favail < LEAST_FREE_INODES * space.f_files:
        return warn(
            name,
            t("{folder}: {f_favail} inodes free", folder=folder, f_favail=space.f_favail),
            t("make room: remove files"),
        )
    text = t("{folder}: {free} GiB free", folder=folder, free=f"{free / _GIB:.1f}")
    store = config.nats.embedded.store or config.data_dir / "nats"
    if config.embedded and store.is_relative_to(folder):
        grows = config.log.max_bytes + config.evidence.max_bytes - _taken(store / "js")
        if grows > free - LEAST_FREE_BYTES:
            return warn(
                name,
                t(
                    "{text}, and log and evidence may grow by {grows} GiB",
                    text=text,
                    grows=f"{grows / _GIB:.1f}",
                ),
                t("make room, or lower log.max_bytes and evidence.max_bytes"),
            )
    return ok(name, text)


def _taken(folder: Path) -> int:
    """The bytes that the files below a folder take. It is the brain's, which can lead it anywhere: so many are counted."""
    taken = 0
    for place, _, names in itertools.islice(os.walk(folder), _MOST_FOLDERS):
        for name in names:
            with suppress(OSError):
                taken += os.lstat(os.path.join(place, name)).st_size
    return taken


def clock(found: Installation) -> Iterator[HealthLine]:  # noqa: ARG001  the shape of a check
    """Something keeps this machine's clock right, as its kernel says: certificates and tokens end by it."""
    name, action = "clock", t("start chronyd or systemd-timesyncd here, and see `timedatectl`")
    kernel = kernel_clock.read()
    if kernel is None:
        yield unchecked(name, t("the kernel does not tell"))
    elif not kernel.synchronised:
        yield warn(name, t("nothing synchronises this machine's clock, says its kernel"), action)
    elif abs(kernel.offset_s) > OFF_S:
        yield warn(
            name, t("this machine's clock is off by {offset_s} s", offset_s=f"{kernel.offset_s:.3f}"), action
        )
    else:
        yield ok(
            name, t("synchronised; off by at most {max_error_s} s", max_error_s=f"{kernel.max_error_s:.3f}")
        )


def units(found: Installation) -> Iterator[HealthLine]:  # noqa: ARG001  the shape of a check
    """What runs here as a unit is there again after a reboot. Where something else starts it, nothing is said."""
    name, starts = "units", []
    for unit in ("gpuward", "gpuward-agent"):
        found_at_boot = unit_start.at_boot(f"{unit}.service")
        if found_at_boot is UnitStart.MASKED:
            yield warn(
                name,
                t("{unit}.service is masked: it does not come back when this machine is rebooted", unit=unit),
                t(
                    "whoever administers this machine, as root: `systemctl unmask {unit}`, then `systemctl enable {unit}`",
                    unit=unit,
                ),
            )
        elif found_at_boot is UnitStart.WAITS:
            yield warn(
                name,
                t(
                    "{unit}.service is not enabled: it does not come back when this machine is rebooted",
                    unit=unit,
                ),
                t("whoever administers this machine, as root: `systemctl enable {unit}`", unit=unit),
            )
        elif found_at_boot is UnitStart.STARTS:
            starts.append(f"{unit}.service")
    if starts:
        yield ok(name, t("start with this machine: {units}", units=some(starts)))


def group_names(found: Installation) -> Iterator[HealthLine]:
    """Somebody is told: there are channels."""
    config, name = found.config, "channels"
    if not config.channels:
        where = config.data_dir / "pages.log"
        yield warn(
            name,
            t("none is configured: pages go to {where} only", where=where),
            t("[channels.*] and [groups] of brain.toml"),
        )
    elif "oncall" not in config.groups:
        yield ok(
            name,
            t("the group oncall is all of them, in this order: {channels}", channels=some(config.channels)),
        )
    if not config.dead_mans_switches:
        yield warn(
            "dead man's switch",
            t("none is configured: nobody is told when this machine dies"),
            t("[dead_mans_switches.*] of brain.toml"),
        )
