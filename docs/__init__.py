"""The documents; `generate.py` writes those that come from the code."""
