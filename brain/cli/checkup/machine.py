"""The brain's machine: configuration, rules, modes of files, disk, clock."""

import itertools
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent.contract.counted import counted
from agent.contract.errors import ConfigError
from agent.shared import kernel_clock
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
_MOST_FOLDERS = 1000  # of a NATS server's store: some tens


def configuration(found: Installation) -> Iterator[HealthLine]:
    """The file can be read (else there is no installation to look at), and so can what it names."""
    name = "configuration"
    for text in found.warnings:
        yield warn(name, text, "use the new name: the old one is read until the version that it says")
    try:
        places = found.config.places()
    except ConfigError as error:
        yield fail(name, str(error), "correct the topology file")
        return
    known = found.brain and [str(node["name"]) for node in found.brain.nodes]
    for window in found.config.settings.maintenance:
        if known and window.until > found.now and (wrong := scopes.mistake(window.scope, known, places)):
            yield warn(
                name,
                f"the maintenance window ({window.why}) holds for nothing: {wrong}",
                "correct its scope in brain.toml",
            )
    of_places = f", {counted(len(places), 'place')} of nodes" if places else ""
    yield ok(name, f"{found.file or 'no file, so defaults'}: cell {found.config.cell}{of_places}")


def rules(found: Installation) -> Iterator[HealthLine]:
    """As `gpuward check`."""
    config, name = found.config, "rules"
    report = check.examine(config.rules_dir, config.runbooks_dir)
    again = f"gpuward check --rules {config.rules_dir} --runbooks {config.runbooks_dir}"
    if report.faults:
        yield fail(name, f"{counted(len(report.faults), 'error')}: {report.faults[0]}", again)
        return
    many = f"{counted(report.rules, 'rule')} and {counted(report.runbooks, 'runbook')}"
    if report.warnings:
        yield warn(name, f"{counted(len(report.warnings), 'old name')}: {report.warnings[0].text}", again)
    in_force = found.brain.status["pack"] if found.brain else ""
    if in_force and in_force != _version(config):
        yield warn(
            name,
            f"{many} in the files, and others are in force ({in_force})",
            "`systemctl reload gpuward`; where another brain leads, give it the same files and settings",
        )
        return
    yield ok(
        name, f"{many}, {counted(report.examples_passed, 'example')} passed{', in force' if in_force else ''}"
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
            name, f"data_dir {config.data_dir}: {error.strerror}", "the brain makes it at its start"
        )
        return
    before = 0
    for line in _wrong(found, owner):
        before += 1
        yield line
    if not before:
        yield ok(name, f"data_dir {config.data_dir} and all secrets are for {_user(owner.st_uid)} alone")


def _wrong(found: Installation, owner: os.stat_result) -> Iterator[HealthLine]:
    config, name = found.config, "files"
    if owner.st_mode & 0o007:
        yield warn(name, f"data_dir {config.data_dir} is open to everybody", f"chmod o-rwx {config.data_dir}")
    for key, path in secret_files(config):
        try:
            seen = path.stat()
        except FileNotFoundError:
            if key:
                yield fail(name, f"{key}: {path} is not there", "put it there, or take the key out")
            continue
        except OSError as error:
            yield unchecked(
                name, f"{path}: {error.strerror}", f"run this as root or as {_user(owner.st_uid)}"
            )
            continue
        laid_by = path.lstat().st_uid
        if laid_by not in (
            0,
            seen.st_uid,
        ):  # whoever did as the lines below say would give away what it leads to
            yield fail(
                name,
                f"{path} is a link, of {_user(laid_by)}, to a file of {_user(seen.st_uid)}",
                "look who laid it there, and remove the link",
            )
        elif seen.st_mode & 0o027:
            yield fail(
                name,
                f"{path} is a secret and has mode {stat.S_IMODE(seen.st_mode):04o}",
                f"chmod 0600 {path}",
            )
        elif not _readable(seen, owner.st_uid):
            yield fail(
                name,
                f"{path} belongs to {_user(seen.st_uid)}: the brain's user {_user(owner.st_uid)} cannot read it",
                f"chown {_user(owner.st_uid)} {path}",
            )
        elif seen.st_uid not in (0, owner.st_uid):
            yield fail(
                name,
                f"{path} is a secret and belongs to {_user(seen.st_uid)}, who is neither root nor the brain's user "
                f"{_user(owner.st_uid)}",
                f"look who has had it; then chown {_user(owner.st_uid)} {path}",
            )
    believed = [config.rules_dir, config.runbooks_dir, *([found.file] if found.file else [])]
    for place in believed:
        if place.exists() and place.stat().st_mode & 0o002:
            yield fail(name, f"{place} can be changed by everybody", f"chmod o-w {place}")


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
            f"{folder} can only be read",
            "see `dmesg` for errors of its file system, mend it, and mount it for writing",
        )
    free = space.f_bavail * space.f_frsize
    if free < LEAST_FREE_BYTES:
        return fail(
            name, f"{folder}: {free // 1024**2} MiB free", "make room: without it nothing is recorded"
        )
    if space.f_files and space.f_favail < LEAST_FREE_INODES * space.f_files:
        return warn(name, f"{folder}: {space.f_favail} inodes free", "make room: remove files")
    text = f"{folder}: {free / _GIB:.1f} GiB free"
    store = config.nats.embedded.store or config.data_dir / "nats"
    if config.embedded and store.is_relative_to(folder):
        grows = config.log.max_bytes + config.evidence.max_bytes - _taken(store / "js")
        if grows > free - LEAST_FREE_BYTES:
            return warn(
                name,
                f"{text}, and log and evidence may grow by {grows / _GIB:.1f} GiB",
                "make room, or lower log.max_bytes and evidence.max_bytes",
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
    name, action = "clock", "start chronyd or systemd-timesyncd here, and see `timedatectl`"
    kernel = kernel_clock.read()
    if kernel is None:
        yield unchecked(name, "the kernel does not tell")
    elif not kernel.synchronised:
        yield warn(name, "nothing synchronises this machine's clock, says its kernel", action)
    elif abs(kernel.offset_s) > OFF_S:
        yield warn(name, f"this machine's clock is off by {kernel.offset_s:.3f} s", action)
    else:
        yield ok(name, f"synchronised; off by at most {kernel.max_error_s:.3f} s")


def group_names(found: Installation) -> Iterator[HealthLine]:
    """Somebody is told: there are channels."""
    config, name = found.config, "channels"
    if not config.channels:
        where = config.data_dir / "pages.log"
        yield warn(
            name, f"none is configured: pages go to {where} only", "[channels.*] and [groups] of brain.toml"
        )
    elif "oncall" not in config.groups:
        yield ok(name, f"the group oncall is all of them, in this order: {some(config.channels)}")
    if not config.dead_mans_switches:
        yield warn(
            "dead man's switch",
            "none is configured: nobody is told when this machine dies",
            "[dead_mans_switches.*] of brain.toml",
        )
