### A kernel log that is pasted, and its verdict.

diagnose-what = Paste a kernel log, or drop a file: what is wrong, how sure, what to do, and what gpuward would run. Nothing is done, and nothing of it is kept.
diagnose-log = Kernel log (dmesg, journalctl -k, /dev/kmsg)
diagnose-file = Or a file (.gz too)
diagnose-driver = NVIDIA driver, if the log does not say
diagnose-cut = { $n ->
    [one] It is too long: its first line is left out. `gpuward diagnose FILE` reads all of it.
   *[other] It is too long: its first { $n } lines are left out. `gpuward diagnose FILE` reads all of it.
  }
diagnose-busy = Reading the log…
diagnose-clear = Clear
diagnose-unreadable = { $name } cannot be read: { $why }
verb-diagnose = Diagnose
log-in-to-diagnose = Log in to diagnose
verdict-incidents = { $n ->
    [one] 1 fault found
   *[other] { $n } faults found
  }
verdict-well = Nothing wrong found
verdict-no-rule = No fault: no rule acts on what is below
verdict-unknown = No all-clear
verdict-no-all-clear = No all-clear:
verdict-other = Other lines that mean something, on which no rule acts
verdict-counts = { $n ->
    [one] 1 line read, { $known } with a known meaning.
   *[other] { $n } lines read, { $known } of them with a known meaning.
  }
verdict-unread = { $n } could not be read.
verdict-sure = How sure:
verdict-explains = It explains:
verdict-would-run = gpuward would run
verdict-would-page = gpuward would do nothing, only page.
verdict-over = It lasted { $span }: a line says that it has ended.
verdict-booted = Its last sign is from before the machine started again ({ $line }); no line says whether it is so since.
verdict-silent = Its last sign is { $span } before the end of the log; no line says that it has ended.
verdict-line = line { $n }
