### The audit: who did what, and what came of it.

audit-kind = What
audit-kind-operator = what people said
audit-kind-access = logins and tokens
audit-kind-page = pages
audit-kind-incident = incidents
audit-kind-run = runs
audit-kind-step = steps
audit-kind-symptom = symptoms
audit-kind-node = nodes
audit-kind-hold = holds that ended
audit-kind-brain = the brains
audit-who = Who
audit-incident = Incident
audit-run = Run
audit-until = Until
audit-export = Export (JSONL)
audit-more = More filters
audit-none = No notes like that.
audit-only = Only what { $what } did
audit-fresh = { $n ->
    [one] 1 new note
   *[other] { $n } new notes
  }
