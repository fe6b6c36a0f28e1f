"""What people write in rules/ and runbooks/: its shape, its checks, and how it is compiled for the engine."""
