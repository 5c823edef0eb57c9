"""What a card says. Pure: no I/O, no clock, no event loop, no wire types."""
