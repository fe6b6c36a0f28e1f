### The map of the fleet.

node-state-needs_human = needs a person
node-state-healing = healing
node-state-unreachable = not heard
node-state-drained = out of service
node-state-suspect = suspect
node-state-well = well
node-state-unknown = never heard
fleet-nodes = { $n ->
    [one] 1 node
   *[other] { $n } nodes
  }
fleet-of = { $n } of { $all } nodes
fleet-no-key = Nothing is called “{ $key }:”. There are state, severity, cause, rack, leaf, pod, job, agent, driver and is:held.
fleet-filter = Filter
fleet-by = Group by
by-rack = Rack
by-leaf = Leaf
by-pod = Pod
by-job = Job
by-agent = Agent
by-driver = Driver
by-none = No groups
fleet-list = List
fleet-legend = States: how many, and filter by them
fleet-held = held
fleet-nowhere = not known
fleet-empty = No node is known yet.
fleet-none = No node is like that.
fleet-map = Map of the nodes
fleet-keys = Arrow keys go from node to node, n and p to the next and previous by urgency, Enter opens the node. Plus and minus zoom, zero shows all, Shift with arrows moves the map. The button List shows the same as a table.
fleet-nearer = Nearer
fleet-farther = Farther
fleet-whole = Show all
fleet-open = Open
fleet-gpus = { $n ->
    [one] 1 GPU
   *[other] { $n } GPUs
  }
fleet-table = { $n } of { $all }, the most urgent first
fleet-more = { $n } more
past = Back in time
past-now = Now
past-as-of = As of { $when }, { $ago }. Places and nodes are today’s.
past-earlier = − 5 min
past-later = + 5 min
past-back = To now
