"""Rights over the data: what is known and why, to take it along, and to have it erased."""
