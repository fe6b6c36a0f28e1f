"""The drills: what `gpuward drill NAME` injects into a simulated machine, and what ends it. Pure.

Each row is honest about its end: what an action can heal on a real machine it heals here, and the rest goes to a person.
A new drill is a row in the file of its area, and a row with its story in `tests/simulations/stories.py`.
"""

from simulations.drills import accelerators, dcgm, gpu, host, infiniband, jobs, network
from simulations.drills.drill import JOB as JOB
from simulations.drills.drill import Drill as Drill

AREAS = (gpu, jobs, dcgm, accelerators, infiniband, network, host)
DRILLS: dict[str, Drill] = {drill.name: drill for area in AREAS for drill in area.DRILLS}
