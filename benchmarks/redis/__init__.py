"""Redis sessions beside the SDK's and beside the bare client."""
