"""What contradicts a card. Pure: no I/O, no clock, no event loop, no wire types."""
