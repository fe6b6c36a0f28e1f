"""`gpuward backtest`: what gpuward would have seen and decided, of a recorded log or of a folder of kernel logs."""
