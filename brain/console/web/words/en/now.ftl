### The first page: what needs a person, what heals by itself, what was.

now-needs = Needs a person
now-needs-none = Nothing needs you.
now-heals = Heals by itself
now-was = Was
