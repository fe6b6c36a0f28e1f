"""`gpuward` and `python -m brain`: the composition root of the command line.

`up`, `drill` and `simulate` live above the brain; importing them here, when they are called, is the one import upwards.
"""

import click

from brain.cli.main import run


def _up() -> click.Command:
    from simulations import cli

    return cli.up


def _drill() -> click.Command:
    from simulations import cli

    return cli.drill


def _simulate() -> click.Command:
    from simulations import simulate

    return simulate.simulate


MOUNTS = {"up": _up, "drill": _drill, "simulate": _simulate}


def main() -> None:
    """The command `gpuward`."""
    run(MOUNTS)


if __name__ == "__main__":
    main()
