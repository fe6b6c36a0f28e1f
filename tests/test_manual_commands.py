"""Every command of the manual is run by a test, or says here why it is not.

A page's `console` blocks are typed in their order by the test that `CONSOLES` names, which compares what they print. `LEDGER` has
all other commands: `By` names a test that runs it, whose file has the command word for word, or the words by which it takes the
command off the page; a text says why no test runs it. What is in neither fails, and so does an entry that no page has.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests import manual

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PAGES = sorted(path.name for path in (manual.ROOT / "docs").glob("*.md"))


@dataclass(frozen=True, slots=True)
class By:
    """A test that runs a command."""

    test: str  # tests/FILE::NAME
    words: str = ""  # by which it takes the command off the page; empty: its file has the command


CONSOLES = {
    "backtest.md": By("tests/brain/backtest/test_page.py::test_the_commands_of_the_page_print_what_it_shows"),
    "first-day.md": By(
        "tests/e2e/test_manual.py::test_every_command_of_a_tutorial_does_what_the_page_says",
        "manual.TUTORIALS",
    ),
    "operations.md": By("tests/e2e/test_manual.py::test_what_a_page_lets_one_type_at_a_site_that_runs"),
    "simulation.md": By(
        "tests/simulations/month/test_page.py::test_the_commands_of_the_page_print_what_it_shows"
    ),
    "topology.md": By("tests/brain/topology/test_manual_page.py::test_every_command_does_what_the_page_says"),
    "write-a-rule.md": By(
        "tests/e2e/test_manual.py::test_every_command_of_a_tutorial_does_what_the_page_says",
        "manual.TUTORIALS",
    ),
}

_PACKAGES = "tests/real/test_packages.py::{}"
_STRANGER = _PACKAGES.format("test_a_strangers_clock")
_LIFE = _PACKAGES.format("test_the_agent_by_apt")
_BOTH = _PACKAGES.format("test_one_package_leaves_the_files_of_the_other")
_ANSIBLE = "tests/real/test_ansible.py::test_a_site_by_its_inventory"
_HA = "tests/real/test_kustomize_ha.py::test_two_brains_three_servers_and_what_dies"
_HA_MADE = "tests/real/test_kustomize_ha.py::test_what_the_api_server_makes_of_it"
_SLURM = "tests/real/test_slurm_page.py::test_the_lines_of_slurm_conf"
_MOVED = "tests/security/test_moved_cell.py::test_a_cell_moves_to_another_machine"
_CELL = By("tests/security/test_cell_page.py::test_a_cell_is_made_and_joined_as_the_page_says")
_HEALTH = "tests/real/test_nats_cluster_faults.py runs the script beside a server whose disk is full, without its unit"
_NO_DNF = "what dnf leaves; no container of the tests has dnf, and rpm is used as it is"
_REGISTRY = "a registry and its password are a site's"
_NO_KUBELET = (
    "the control plane of the tests has no kubelet, which alone makes a pod ready and runs a command in it"
)
_ARCHIVE = By("tests/real/test_archive_page.py::test_what_the_pages_let_one_type")

LEDGER: Mapping[str, Mapping[str, By | str]] = {
    "api.md": {
        'curl -s --cacert ca.pem -H "Authorization: Bearer $(cat token)" https://brain:8470/api/v1/incidents': _ARCHIVE,
    },
    "backtest.md": {
        "gpuward log export month.ndjson.gz --from-archive s3://gpu-logs/gpuward --since 30d": _ARCHIVE,
        "gpuward backtest month.ndjson.gz": _ARCHIVE,
    },
    "cell.md": {
        "gpuward cell init --name brain-1.example.com --write": _CELL,
        "systemctl enable --now gpuward": By(
            "tests/real/test_packages_promises.py::test_a_brain_is_not_replaced_by_one_that_cannot_read_what_root_can"
        ),
        "gpuward cell token --nodes 'gpu-*' --count 100 --for 24h": _CELL,
        "gpuward-agent join - < token.txt": _CELL,
        "systemctl enable --now gpuward-agent": By(_LIFE),
        "gpuward cell rotate signing": _CELL,
        "gpuward cell show": _CELL,
        "gpuward cell show --nats-accounts > gpuward-accounts.conf": _CELL,
        "gpuward cell export --jwt FOLDER": _CELL,
        "gpuward cell export --jwt FOLDER --operator-seed signing.nk": _CELL,
        """nats --creds system.creds request '$SYS.REQ.CLAIMS.UPDATE' "$(cat accounts/N_gpu-1.jwt)\"""": (
            "Debian does not have the program nats; tests/security/test_operator_mode.py makes the same request"
        ),
    },
    "install.md": {
        "tar -xf gpuward-*.tar --strip-components=1": By(_STRANGER, 'follows("Without a network")'),
        "sha256sum --quiet -c SHA256SUMS": By(_STRANGER, 'follows("Without a network")'),
        "apt-get install -y ./gpuward_*.deb": By(_STRANGER, 'follows("The brain")'),
        "gpuward cell init --name brain.example.com --write": By(_STRANGER, 'follows("The brain")'),
        "systemctl enable --now gpuward": By(_STRANGER, 'follows("The brain")'),
        "gpuward cell token --nodes 'gpu-*' --count 100": By(_STRANGER, 'follows("The brain")'),
        "apt-get install -y ./gpuward-agent_*.deb": By(_STRANGER, 'follows("A node", TOKEN=token)'),
        "gpuward-agent join TOKEN": By(_STRANGER, 'follows("A node", TOKEN=token)'),
        "systemctl enable --now gpuward-agent": By(_STRANGER, 'follows("A node", TOKEN=token)'),
        "gpuward nodes": By(_STRANGER, 'follows("Is all well?")'),
        "gpuward doctor": By(_STRANGER, 'follows("Is all well?")'),
        "install -D -m 0644 -t /etc/systemd/system/gpuward-agent.service.d /usr/share/gpuward-agent/hands.conf": By(
            _BOTH, 'documented(f"install -D -m 0644 -t {drop_ins} /usr/share/gpuward-agent/hands.conf")'
        ),
        "systemctl daemon-reload": By(_BOTH),
        "systemctl restart gpuward-agent": "a restart of a unit is systemd's; the tests of packages start it with the drop-in",
        "apt-get install -y --allow-downgrades ./gpuward-agent_*.deb": By(_LIFE),
        "apt-get remove -y gpuward-agent": By(_LIFE),
        "apt-get purge -y gpuward-agent": By(_LIFE),
        "apt-get purge -y gpuward": By(_LIFE),
        "rm -rf /var/lib/gpuward-agent /var/lib/gpuward-agent-hands /etc/gpuward": _NO_DNF,
        "userdel gpuward-agent": _NO_DNF,
        "ansible-playbook site.yml --check": By(_ANSIBLE, 'documented(f"{ALL} --check")'),
        "ansible-playbook site.yml": By(_ANSIBLE),
        "ansible-playbook site.yml -e gpuward_version=0.3.0": By(_ANSIBLE, "documented(LATER"),
        "ansible-playbook site.yml -e gpuward_version=0.2.1": By(_ANSIBLE, "documented(BACK"),
        "ansible-playbook remove.yml": By(_ANSIBLE),
        "ansible-doc -t role -r roles gpuward_agent": By(_ANSIBLE),
    },
    "kubernetes.md": {
        "make images": "minutes, and pushed nowhere; tests/real/test_images.py builds them by the same script and runs them",
        "buildah push --authfile AUTH oci-archive:build/gpuward-brain.oci.tar docker://REGISTRY/gpuward/brain:0.2.1": _REGISTRY,
        "buildah push --authfile AUTH oci-archive:build/gpuward-agent.oci.tar docker://REGISTRY/gpuward/agent:0.2.1": _REGISTRY,
        "kubectl apply -k site/brain": By(_HA_MADE),
        "kubectl -n gpuward rollout status statefulset/gpuward": _NO_KUBELET,
        "kubectl apply -f deploy/kubernetes/agent/namespace.yaml": By(
            "tests/real/test_kustomize.py::test_the_controllers_make_the_pods"
        ),
        "kubectl -n gpuward exec gpuward-0 -c brain -- gpuward cell token --nodes '*' --count 100 --for 24h > token.txt": By(
            _HA, 'commands("From nothing to observing", "kubectl apply -f deploy/kubernetes/agent")'
        ),
        "kubectl -n gpuward-agent create secret generic gpuward-join --from-file=token=token.txt": By(
            _HA, "kubectl -n gpuward-agent create secret generic gpuward-join "
        ),
        "kubectl apply -k site/agent": By(_HA),
        "kubectl -n gpuward-agent rollout status daemonset/gpuward-agent": _NO_KUBELET,
        "kubectl -n gpuward exec gpuward-0 -c brain -- gpuward --url https://127.0.0.1:8470 --ca-file"
        " /var/lib/gpuward/cell/ca.pem nodes": By(
            _HA, '("--url", "https://127.0.0.1:8470", "--ca-file", "/var/lib/gpuward/cell/ca.pem")'
        ),
        **dict.fromkeys(
            (
                "umask 077; mkdir keys",
                'names=$(for n in 0 1 2; do echo "--name gpuward-nats-$n.gpuward-nats.gpuward.svc"; done)',
                "gpuward cell init --data keys --name gpuward-join.gpuward.svc --name gpuward.gpuward.svc"
                " --name gpuward.gpuward.svc.cluster.local",
                "gpuward cell export --data keys --jwt keys/nats",
                "gpuward cell certificate keys/tls $names",
                "gpuward cell share --data keys keys/cell.json",
            ),
            By(_HA, 'commands(section, "umask")'),
        ),
        **dict.fromkeys(
            (
                "kubectl apply -f deploy/kubernetes/rbac/rbac.yaml",
                "kubectl -n gpuward create secret generic gpuward-cell --from-file=keys/cell.json",
                "kubectl -n gpuward create secret generic gpuward-nats --from-file=keys/nats/resolver.conf"
                " --from-file=tls.crt=keys/tls/server.pem --from-file=tls.key=keys/tls/server.key"
                " --from-file=ca.crt=keys/tls/ca.pem",
            ),
            By(_HA, 'commands(section, "kubectl apply -f")'),
        ),
        "kubectl -n gpuward rollout status statefulset/gpuward-nats": _NO_KUBELET,
        "kubectl -n gpuward exec gpuward-0 -c brain -- gpuward cell share - > keys/cell.json": By(
            _HA, 'exec("gpuward", "cell", "share", "-")'
        ),
        "kubectl -n gpuward exec -i gpuward-1 -c brain -- gpuward cell take - < keys/cell.json": By(
            _HA, 'exec("gpuward", "cell", "take", "-"'
        ),
        "kubectl apply -f deploy/kubernetes/rbac/tell-events.yaml -f deploy/kubernetes/rbac/tell-conditions.yaml": By(
            "tests/real/test_kube_off.py::test_what_ran_on_a_dead_node_ends_when_it_is_seen_to_be_off"
        ),
        "kubectl apply -f deploy/kubernetes/rbac/devices.yaml": By(
            "tests/real/test_kube_devices.py::test_a_right_that_is_missing_is_named"
        ),
        "kubectl apply -f deploy/kubernetes/rbac/conditions.yaml": By(
            "tests/real/test_kube_conditions.py::test_the_account_may_only_when_it_is_given_the_right"
        ),
    },
    "operations.md": {
        """journalctl -u gpuward -o cat | jq -cR 'fromjson? | select(.incident == "inc-…")'""": By(
            "tests/e2e/test_json_logs.py::test_a_step_is_found_in_both_logs_by_its_ids",
            r"journalctl -u gpuward -o cat \| (jq .*)",
        ),
        "install -D -m 0755 health.sh /usr/local/lib/gpuward/health.sh": _HEALTH,
        "install -m 0644 gpuward-nats-health.service /etc/systemd/system/": _HEALTH,
        "systemctl enable --now gpuward-nats-health": _HEALTH,
        "gpuward log show s3://gpu-logs/gpuward": _ARCHIVE,
        "gpuward log export month.ndjson.gz --from-archive s3://gpu-logs/gpuward --since 30d": _ARCHIVE,
        "cd /var/lib/gpuward && mkdir without-its-past && mv history.sqlite* state.snapshot without-its-past": _ARCHIVE,
        "gpuward log replay s3://gpu-logs/gpuward --into /var/lib/gpuward": _ARCHIVE,
        "systemctl disable --now gpuward": "the test of a move ends its brain as systemd does",
        "(umask 077 && tar -C / -czf ~/cell.tar.gz etc/gpuward var/lib/gpuward)": By(_MOVED),
        "tar -C / -xzf ~/cell.tar.gz && systemctl enable --now gpuward": By(_MOVED),
        """for gpu in $(echo "$SLURM_JOB_GPUS" | tr , ' '); do echo "$SLURM_JOB_ACCOUNT" > "/var/run/dcgm/$gpu"; done""": (
            "a line of a site's Prolog, for dcgm-exporter, which needs a GPU"
        ),
    },
    "slurm.md": {
        "sacctmgr add user gpuward account=root adminlevel=operator": "the Slurm of the tests has no database of accounts",
        "install -d /etc/slurm/gpuward": By(_SLURM, 'block("install -d")'),
        "install -m 0755 prolog.sh epilog.sh healthcheck.sh reboot.sh /etc/slurm/gpuward": By(
            _SLURM, 'block("install -d")'
        ),
        **dict.fromkeys(
            (
                "gpuward-agent check",
                "gpuward-agent check --json",
                "gpuward-agent check --also storage,network",
            ),
            By(
                "tests/real/test_slurm_page.py::test_the_commands_of_the_check",
                'block("gpuward-agent check").splitlines()',
            ),
        ),
        "sinfo --noheader --format=%E": By(_SLURM, 'block("$ sinfo")'),
    },
    "topology.md": dict.fromkeys(
        (
            "ibnetdiscover > ibnetdiscover.txt",
            "cp /etc/slurm/topology.conf .",
            "kubectl get nodes -o json > nodes.json",
            'lldpcli show neighbors -f json > "$(hostname -s).json"',
        ),
        "tools of a site with the fabric; what they print is read from recordings",
    ),
    "write-a-rule.md": dict.fromkeys(
        (
            "cp -r site/rules site/runbooks /etc/gpuward/",
            "systemctl restart gpuward",
            "gpuward mode drain-full-scratch approve",
        ),
        manual.NOT_RUN["on-a-real-site"],
    ),
}
# How many of the manual's commands no test runs. It only falls.
NOT_RUN_AT_MOST = 23


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_run_or_says_why_not(page: str) -> None:
    """And nothing stands in the ledger that the page no longer has."""
    commands, known = _commands(page), LEDGER.get(page, {})
    assert [one for one in commands if one not in known] == [], f"{page}: who runs these?"
    assert [one for one in known if one not in commands] == [], f"{page} no longer has these"


def test_the_tests_that_are_named_run_them() -> None:
    """Each test is there, and its file has the command, or takes it off the page."""
    named = [
        (command, by) for ledger in LEDGER.values() for command, by in ledger.items() if isinstance(by, By)
    ]
    named += [(f'"{page}"', by) for page, by in CONSOLES.items()]
    for command, by in named:
        file, _, name = by.test.partition("::")
        source = (manual.ROOT / file).read_text(encoding="utf-8")
        tests = {one.name for one in ast.walk(ast.parse(source)) if isinstance(one, _FUNCTIONS)}
        assert name in tests, f"{by.test} is not there"
        assert (by.words or command) in source, f"{by.test} does not run {command}"


def test_few_commands_are_not_run() -> None:
    """A command that cannot run has a reason; a new one is rather run."""
    left = [why for ledger in LEDGER.values() for why in ledger.values() if isinstance(why, str)]
    assert len(left) <= NOT_RUN_AT_MOST


def _commands(page: str) -> list[str]:
    """Those that the page's `console` blocks do not have, or all when no test types these."""
    typed = {manual.without_comment(one.command) for one in manual.typed(page)} if page in CONSOLES else set()
    return [command for block in manual.commands(page) for command in block if command not in typed]
