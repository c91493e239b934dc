"""What the step would be without this or that: the recorded work replayed as a max-plus recurrence."""
