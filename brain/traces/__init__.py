"""The way of a fault as an OpenTelemetry trace: made of what the read model holds, as `gpuward explain` is. Pure."""
