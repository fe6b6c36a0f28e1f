"""`gpuward top`, in Textual's own terminal, against the real server of a brain whose engine plays a story."""
