"""Moving in and out: imports from other systems, exports, and copies between databases."""
