### The pages of one node and of one card.

by-chassis = Chassis
node-fabric = Fabric
node-not-heard = It is not heard.
node-beat = heard { $span } ago
node-no-beat = no heartbeat
node-agent = agent { $version }
node-spooled = { $n ->
    [one] 1 event waits on it
   *[other] { $n } events wait on it
  }
node-dropped = { $n ->
    [one] 1 event lost
   *[other] { $n } events lost
  }
node-clock = clock { $span } ahead
node-clock-behind = clock { $span } behind
node-booted = up since
node-on-map = On the map
node-audit = In the audit
node-open = Open incidents
node-none-open = Nothing is open.
node-holds = Held
node-drains = Out of service
node-drain-unsure = the scheduler has not confirmed it
node-jobs = Jobs
node-no-jobs = None.
node-asked = the scheduler was asked
node-cards = Cards
node-inventory = What it is made of
node-before = What it told before ({ $n })
node-done = What was done
node-runs = Runs
node-said = What people said
node-past = Earlier incidents
node-not-known = What nobody knows
card-incidents = { $n ->
    [one] 1 incident
   *[other] { $n } incidents
  }
card-places = Where it was
card-page = History of this card
card-gpu = GPU
card-other = Network card
card-in = It is in
card-was-in = It was last in
card-told = What it is
card-no-incidents = No incident is known of it.
card-repairs = What was done
told-at = told
told-kernel = Kernel
told-driver = Driver
told-gpus = GPUs
told-gpu-models = GPU models
told-nics = Network cards
told-nic-firmware = Their firmware
told-gpu-vbios = VBIOS
told-cpus = Processors
told-memory-mb = Memory, MiB
told-product = Product
told-bios = BIOS
told-model = Model
told-uuid = UUID
told-serial = Serial number
told-vbios = VBIOS
told-firmware = Firmware
told-board = Board
told-guid = GUID
told-bdf = PCI address
told-netdevs = Interfaces
