### The first page: what needs a person, what heals by itself, what was.

now-needs = Needs a person
now-needs-none = Nothing needs you.
now-not-known = Not known yet.
now-more = { $n } more
now-heals = Heals by itself
now-was = Over in the last 24 hours
now-was-none = Nothing was.
healed-by = healed by { $runbook }
went-away = went away
holds = Holds
need-approval = waits for an approval
need-no_remedy = no remedy left
need-breaker = the breaker has tripped
need-hold_stands = a hold without an end
need-hold_ends = a hold ends soon
need-page = nobody has acknowledged
need-drained = out of service
