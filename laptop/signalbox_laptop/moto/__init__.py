"""moto in a process of its own, and what it is taught first."""
