"""The benchmarks of docs/benchmarks.md: `make bench` (all), `python -m tests.benchmarks engine` (one)."""
