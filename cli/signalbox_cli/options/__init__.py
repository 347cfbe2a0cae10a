"""Options that several commands share, and what they ask a stack for."""
