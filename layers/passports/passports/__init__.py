"""The pack `passports`."""
