### The page of one incident, and a run as a ladder.

needs-approval = This waits for your approval
why-we-think-so = Why we think so
what-to-do = What to do
rule = Rule
also-matches = also matches:
more-symptoms = { $n ->
    [one] and 1 more symptom
   *[other] and { $n } more symptoms
  }
stale = Every fact was old when it arrived: it is verified before anything disruptive is done.
explained-by = Explained by
before = Before:
alert-passed-to = Its alert goes on as that of
what-is-done = What is done
no-run-yet = No run has begun yet; its runbook is { $runbook }.
no-runbook = gpuward has no remedy for this: it is for people.
way-back = The way back into service
gates = What held it
approved-by = approved by { $who }
under-way = under way
it-helped = it helped
did-not-help = it did not help
who-is-hit = Who is hit
hit-job = job
hit-of = of
hit-share = { $here } of its { $n } nodes
hit-all = all of its { $n } nodes
hit-only-node = its only node
hit-on = on { $nodes }
hit-gpus = { $n ->
    [one] 1 GPU
   *[other] { $n } GPUs
}
hit-gone = not there any more since
hit-nobody = Nobody: no job runs there.
hit-more-jobs = and { $n } more
hit-silent-of = Not answered:
hit-left-out = { $n ->
    [one] 1 more node of it was not asked about.
   *[other] { $n } more nodes of it were not asked about.
  }
hit-known-since = Known since
hit-as-of = as of
hit-asked = Not known yet: the scheduler is being asked.
hit-silent = Not known: the scheduler does not answer. Whoever runs it sees to it; it is asked again for half an hour.
hit-no_table = Not known: no table [schedulers.*] has these nodes. Whoever runs gpuward adds their scheduler to brain.toml.
hit-no_scheduler = Not known: no scheduler is configured. Whoever runs gpuward adds a table [schedulers.NAME] to brain.toml.
hit-not_asked = Not known: nobody has asked, since it still settles, is about no node, or was open before.
explains = { $n ->
    [one] It explains 1 other finding.
   *[other] It explains { $n } other findings.
  }
out-of-service = { $node } is out of service.
how-sure = How sure
nothing-speaks = Nothing speaks for or against it.
sure-sure = sure
sure-likely = likely
sure-unclear = unclear
speaks-against = What speaks against it
it-may-be = It may be
what-would-change-it = What would change it
which-place = Which place it is
ill-of = { $ill } of { $of } nodes
what-it-rests-on = What it rests on
no-evidence = No facts are kept for it.
bundle = Evidence bundle
ticket = Ticket
who-was-told = Who was told
delivered = delivered by { $by }
not-delivered = not delivered yet
what-happened = What happened
in-the-audit = All of it in the audit
