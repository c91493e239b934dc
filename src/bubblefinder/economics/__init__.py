"""What a decode step must cost at least, and whether speculation pays."""
