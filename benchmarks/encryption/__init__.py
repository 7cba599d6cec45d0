"""Encrypted sessions beside the SDK's, beside plain ones, and beside the driver."""
