"""Parts of captures: small ones to keep as evidence, and safe ones to send."""
