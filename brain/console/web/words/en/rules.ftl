### Rules and runbooks: the lists, and each one's page.

rules-kinds = Rules or runbooks
rules-tab = Rules
runbooks-tab = Runbooks
rules-filter = Find
rules-which = Which ones
rules-that-fired = Those that fired
runbooks-that-ran = Those that ran
rules-order = Order
rules-order-place = By file and name
rules-order-often = Most often first
rules-order-late = Latest first
rules-shown = { $n } of { $all }
rules-version = version { $pack }
rules-none = None is like that.
rules-made = made by gpuward for shared causes
rule-fired = { $n ->
    [one] fired once
   *[other] fired { $n } times
  }
rule-never = never fired
runbook-ran = { $n ->
    [one] ran once
   *[other] ran { $n } times
  }
runbook-never = never ran
runbook-exhausted = { $n } without success
healed-in = healed in { $span }
runbook = Runbook
rule-people = people only
page-open = pages when it opens
page-failure = pages when healing fails
page-never = pages nobody
figure-fired = Fired
figure-open = Open now
figure-healed = Healed by gpuward
figure-median = Healed in (median)
figure-runs = Runs
figure-succeeded = Succeeded
figure-exhausted = Left to people
figure-observed = Only planned
rule-means = What it means
rule-in-case = In this case:
rule-drain = Drain the node.
rule-matches = What it matches
rule-hold-off = Must last for { $span } before an incident opens.
rule-resolve = Closes when the symptoms have been gone for { $span }.
rule-inhibits = Explains, where they come together
rule-incidents = Its incidents
all-of-them = All of them
rule-source = Written in
cond-always = always
cond-any = at least one of these:
cond-all = all of these:
cond-not = not:
cond-not-all = not all of these:
cond-symptom = symptom
cond-known = is known
cond-unknown = is not known
cond-in = is one of
cond-is = is
cond-is-not = is known, and is not
cond-lt = is less than
cond-lte = is at most
cond-gt = is more than
cond-gte = is at least

## Runbooks

runbook-rules = For:
runbook-ladder = The ladder
runbook-tries = { $n ->
    [one] Not tried for the same fault more than once within { $span }.
   *[other] Not tried for the same fault more than { $n } times within { $span }.
  }
runbook-last-resort = After that:
runbook-back-when = Performed once a rung has helped, if one of them disrupted something. A node returns only when every test here has passed.
runbook-modes = How far it may go here
runbook-runs = Latest runs
runbook-request = People may start it without a fault.
runbook-every = It runs every { $span }.
modes-last-counts = For each node the first line that fits it counts.
mode-on = on nodes
mode-wider = on scopes wider than a node
mode-for = for runbooks
mode-by-configuration = by the configuration
mode-none = on all nodes: nobody has set anything else
mode-at-most = Never looser than “{ $mode }”: the runbook itself says so.
mode = Mode
mode-observe = observe
mode-approve = approve
mode-auto = auto
mode-means-observe = nothing is done; what would be done is told.
mode-means-approve = a person agrees to each disruptive step.
mode-means-auto = it acts by itself, within all gates and budgets.
mode-title = How far may { $name } go?
mode-what = It counts at once, for runs under way as well, until somebody sets another one.
mode-nodes = On which nodes (a pattern; * is all)
verb-mode = Change the mode
stairs = The rungs in order, and what each disrupts
stairs-verified = can end the fault, and is verified
rung-disrupts-nothing = disrupts nothing
rung-disrupts-job = disrupts a job
rung-disrupts-node = disrupts the node
rung-disrupts-fabric = disrupts the fabric
where-node = the node's agent
where-brain = the brain
repeat-safe = may be done again
repeat-probe = verified before it is done again
repeat-never = never done twice
rung-page = Tells people, with what was done and what is left to do.
rung-where = Performed by
rung-repeat = Repeat
rung-timeout = Time-out
rung-retries = Retries
rung-only-if = Only if
rung-after = Only after
rung-worked = It helped when:
follows-always = Then the next rung, even if it fails.
follows-next = If it fails or does not help: the next rung.
follows-stop = If it fails: the ladder stops, and a person takes it from there.
follows-quit = If it fails: the run ends there, and counts as succeeded.
follows-end = If it fails or does not help: no rung is left, and a person takes it from there.
follows-back = If it fails: the node does not return.
refused-next = If the machine refuses it: the next one, and people are told.
refused-stop = If the machine refuses it: the ladder stops.
refused-quit = If the machine refuses it: the run ends, and counts as succeeded.
refused-end = If the machine refuses it: a person takes it from there.
