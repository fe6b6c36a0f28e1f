"""Stories of whole fleets: what happens on many nodes, and which cause and place a good engineer would name.

One YAML file for each class of causes. The real engine plays them with the shipped rules, in virtual time. `open.yaml` lists
the stories that it does not yet judge right, each with the reason. All keys of a story: simulations/scenarios/spec.py.
"""
