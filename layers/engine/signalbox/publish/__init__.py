"""How committed jobs become messages on a lane and events on the bus."""
