"""`gpuward doctor`: looks over a whole installation, and says what to do. It changes nothing."""
