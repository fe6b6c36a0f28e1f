"""Random months: fleets, faults and settings by chance, with every safety law watched (docs/simulation.md)."""
