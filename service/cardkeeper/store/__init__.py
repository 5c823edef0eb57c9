"""Where the fleet's state is kept: one interface, one conformance suite, many engines."""
