"""Find forecast runs, submit them to RunPod, and follow them."""
