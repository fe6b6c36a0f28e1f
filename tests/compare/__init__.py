"""gpuward beside what a site may have instead, on equal work in one run: `make compare`."""
