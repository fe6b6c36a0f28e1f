"""A simulated cluster whose machines really change state; `gpuward up` and `gpuward drill`."""
