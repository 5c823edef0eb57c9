"""Generated from protos/; never edited."""
