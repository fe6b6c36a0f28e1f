#!/bin/sh
# Are there known vulnerabilities in what a lock file pins? Status 1 if so. Where the data cannot be had it says so and ends with
# status 0; with GPUWARD_AUDIT=required with 2.
#
#   deploy/release/audit.sh [LOCK [OPTIONS OF pip-audit ...]]        default: requirements.lock, data of PyPI
set -eu
cd "$(dirname "$0")/../.."
lock=${1:-requirements.lock}
[ $# = 0 ] || shift
tools=$(deploy/release/tools.sh)
found=$(mktemp)
trap 'rm -f "$found" "$found.said"' EXIT
"$tools/pip-audit" -r "$lock" --disable-pip --require-hashes --progress-spinner off -f json "$@" \
  > "$found" 2> "$found.said" || :  # status 1 may be a finding or no network: the answer tells which
.venv/bin/python - "$found" "$found.said" <<'PY'
import json, os, pathlib, sys
try:
    known = json.loads(pathlib.Path(sys.argv[1]).read_text())["dependencies"]
except (ValueError, KeyError):
    known, said = [], pathlib.Path(sys.argv[2]).read_text().strip().splitlines()
    reason = said[-1][:200] if said else "pip-audit said nothing"
judged = [one for one in known if "vulns" in one]
left_out = [one for one in known if "vulns" not in one]
flaws = [(one, flaw) for one in judged for flaw in one["vulns"]]
for one, flaw in flaws:
    mended = ", ".join(flaw["fix_versions"]) or "no version yet"
    print(f"gpuward audit: {one['name']} {one['version']}: {flaw['id']}, mended in {mended}")
if judged:
    print(f"gpuward audit: {len(judged)} packages judged, {len(flaws)} known vulnerabilities")
if left_out:
    names = ", ".join(one["name"] for one in left_out)
    reason = f"{left_out[0].get('skip_reason', '')}; not judged: {names}"
if left_out or not judged:
    print(f"gpuward audit: NOT AUDITED, the data cannot be had: {reason}", file=sys.stderr)
incomplete = bool(left_out or not judged) and os.environ.get("GPUWARD_AUDIT") == "required"
sys.exit(1 if flaws else 2 if incomplete else 0)
PY
