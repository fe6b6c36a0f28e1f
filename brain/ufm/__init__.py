"""NVIDIA UFM as a source of events: its REST API, and what its events mean in our terms."""
