"""Turn committed jobs into messages on a lane and events on the bus."""
