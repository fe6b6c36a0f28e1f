"""How people are told: a page goes to the channels of a group until one takes it."""
