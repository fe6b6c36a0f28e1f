"""Every released version, kept for ever: its code, and states and logs as it wrote them.

    tests/fixtures/releases/0.1.0/source.tar.xz     its agent, brain, rules and runbooks
    tests/fixtures/releases/0.1.0/<seed>.json.xz    a state in the middle of a random story, and the log that follows

`python -m tests.releases` writes those of the present version, once: when it is released.
"""
