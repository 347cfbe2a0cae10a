"""The modules here read a stack's rules, status and logs, on AWS or on the laptop."""
