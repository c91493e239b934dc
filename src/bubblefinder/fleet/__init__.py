"""Many captures at once: found, analysed on several processes, and put side by side."""
