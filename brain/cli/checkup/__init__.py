"""What `gpuward doctor` (brain/cli/doctor.py) looks at: one module for each part of an installation. Nothing is changed there."""
