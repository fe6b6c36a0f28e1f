"""`gpuward simulate --runbook`: every way in which a runbook can go, played by the real engine before it is real."""
