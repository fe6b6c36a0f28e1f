"""The faults that a drill can inject: what happens to a machine over time, and what ends it. Pure.

Each row says honestly what ends it: what an action can heal on a real machine, it heals here; the rest goes to people.
A new one is a row in the area where it belongs, and its story in `tests/simulations/stories.py`.
"""

from simulations import faults_gpu, faults_host, faults_network
from simulations.fault import JOB as JOB
from simulations.fault import Fault as Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault for area in (faults_gpu, faults_network, faults_host) for fault in area.FAULTS
}
