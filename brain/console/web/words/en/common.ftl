### Words of the frame and of parts that stand on many pages. Chinese: ../zh/, file by file, key by key.

skip = Skip to the page
menu = Menu
pages = Pages
nav-now = Now
nav-incidents = Incidents
nav-fleet = Fleet
nav-rules = Rules
nav-rehearse = Rehearse
nav-diagnose = Diagnose
nav-reports = Reports
nav-audit = Audit
cell-of = The cell; this is its brain { $brain }
language = Language
theme = Colours
theme-system = As the system
theme-light = Light
theme-dark = Dark
log-in = Log in
log-out = Log out
log-in-provider = Log in with your account
log-in-how = No account? Whoever has the command line opens the console already logged in:
token = Token
you-are = { $name }, { $role }
you-only-read = You read without having logged in
version-line = gpuward { $version }, rules { $pack }
offline = The brain does not answer. What you see is as of { $since }; this page goes on by itself when it is back.
behind = The brain has no time for this page right now. What you see is as of { $since }.
no-broker = The brain has lost its broker (NATS): nothing new is known until it is back.
still-reading = The brain is still reading its log: what you see is not complete.
login-ended = Your login has ended: log in again.
nobody-leads = No brain leads now: nothing is healed until one does.
problem-title = This cannot be shown
no-answer = The brain does not answer.
loading = Loading…
look-again = Look again
dismiss = Dismiss
cancel = Cancel
show = Show
any = Any
all = All
which = Which
open-ones = Open ones
older = Older
newest = Newest
node = Node
cause = Cause
state = State
severity = Severity
scope = Scope
why = Why
since = Since
until = until
ago = { $span } ago
span-s = { $s } s
span-m = { $m } min { $s } s
span-h = { $h } h { $m } min
span-d = { $d } d { $h } h
hours = { $h ->
    [one] 1 hour
   *[other] { $h } hours
  }
came-back = { $n ->
    [one] it came back once
   *[other] it came back { $n } times
 }
nodes-hit = { $n ->
    [one] 1 node
   *[other] { $n } nodes
  }
show-all = Show all { $n }
no-incidents = No incidents like that.

## States of incidents, runs and rungs; roles; outcomes

state-settling = settling
state-open = open
state-healing = healing
state-needs_human = needs a person
state-recovered = recovered
state-closed = closed
state-explained = explained by another
run-held = held by a gate
run-approval = waits for an approval
run-intent = about to act
run-performing = acting
run-verifying = verifying
run-cancelling = being cancelled
run-succeeded = succeeded
run-exhausted = no remedy left
run-observed = only planned (observe mode)
run-cancelled = cancelled
rung-done = done
rung-failed = did not help
rung-now = under way
rung-waits = waits
rung-out = left out
rung-next = not yet
role-viewer = may read
role-operator = operator
role-approver = approver
role-administrator = administrator
severity-P0 = P0: the fleet
severity-P1 = P1: now
severity-P2 = P2: soon
severity-P3 = P3: when there is time
outcome-ok = ok
outcome-failed = failed
outcome-refused = refused
outcome-unreachable = not reached
outcome-withdrawn = withdrawn in time
outcome-unknown = unknown
outcome-timeout = no answer in time

## What people say

verb-approve = Approve
verb-deny = Deny
verb-ack = I have it
verb-hold = Hold
verb-note = Add a note
verb-close = Close
verb-return = Return to service
verb-release = End the hold
verb-reset = Reset the breaker
verb-start = Start a runbook
verb-forget = Forget
said-done = Done: { $verb }
approve-title = Approve this step?
approve-what = Exactly this is done, and nothing else:
approve-ends = Once given, it counts for { $span }, for this step only; a hold, or a change of what is known, ends it.
ack-title = Is it yours?
ack-what = Nobody is called again: its page is not repeated and not escalated, and the others see that you have it. What gpuward does goes on.
deny-title = Stop this run?
deny-what = gpuward does nothing more for this fault: it is yours then.
hold-title = Hold everything there?
hold-what = gpuward does nothing disruptive there until the hold ends. A step that is under way is not torn off.
for-how-long = For how long
until-released = Until somebody ends it
note-title = Write something down?
note-what = It stands with the incident for the others, and decides nothing.
note-text = Note
take-over = Stop it, I take over
take-over-title = Take this fault over?
close-title = Close this incident?
close-what = Its runs end. While its symptoms last it opens again when they come anew.
return-title = Return { $node } to service?
return-what = You vouch for it: no test is asked for before jobs go there again.
release-title = End this hold?
held-by = { $who } holds { $scope }: { $why }
release-what = { $scope }, by { $who }: { $why }
start-title = Start a runbook on { $node }?
start-what = Holds, gates and approvals count as ever. These may be started without a fault:
start-none = No runbook may be started by people.
forget-title = Forget { $node }?
forget-what = It is gone for good: its incidents and runs end. Should it be heard again, it is a new node.
may-not-approve = Your role may not approve.
may-not-here = You may not approve here: it is outside of what your account is for.
log-in-to-act = Log in to approve or to stop it.
reset-title = Reset the breaker?
reset-what = Disruptive runs may begin again, in the whole cell. First find out why so many began.
disrupts = Disrupts
disrupts-nothing = nothing
disrupts-job = a job
disrupts-node = the node, with all of its jobs
disrupts-fabric = the fabric
never-twice = never done twice
jobs-unknown = Which jobs run there is not known.
jobs-there = Jobs there:
jobs-none = No job runs there.

## An address that is no page

missing-title = There is no such page
missing-what = Nothing of gpuward stands at
