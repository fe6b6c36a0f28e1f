"""Who gives a command: one person, or two of whom the second has said the same (`ann and ben`, console.two_persons)."""

SCHEDULE = "schedule"  # in the place of a person: of a run that the runbook's schedule started


def do(who: str, verb: str) -> str:
    """Returns `ann holds`, or `ann and ben hold`. Names have no spaces."""
    return f"{who} {verb.removesuffix('s') if ' and ' in who else verb}"
