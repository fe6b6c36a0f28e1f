"""From facts to what is true of a place: symptoms, drift, situations, and reports of other systems."""
