"""`gpuward simulate`: a fleet, its faults over weeks, and what comes of them under gpuward and under what sites do without it."""
