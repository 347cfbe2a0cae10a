"""Tell others of what happens to passports."""
