"""How good what is remembered is, measured with no model."""
