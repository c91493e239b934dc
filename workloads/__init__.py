"""Programs with known answers; see README.md. Not part of the wheel."""
