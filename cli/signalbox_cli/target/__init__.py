"""How a command reaches its stack."""
