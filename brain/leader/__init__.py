"""The brain while it runs: reads the log, and does what the engine asks for while it leads. `brain.app` wires the parts.

    every brain    Supervisor → Session → LiveLoop → Replica (engine, snapshot) → HistoryWriter (read model)
    only leading   Leadership → EffectExecutor → StepDispatcher, JobQuestions, PageSender
                   TimerService, LivenessService, PackUpdates, AlertRefresh, PulseService
    about itself   BrainNotes, BrainAlerts, LeaderWatch, ServerKeeper, SnapshotKeeper

What a part reports to the others it appends to the log (LogWriter), and all of them read it from there.
"""
