"""The modules here reach the stack that a command works on."""
