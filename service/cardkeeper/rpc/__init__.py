"""The contract over gRPC: decode, call the fleet, encode; nothing is decided here."""
