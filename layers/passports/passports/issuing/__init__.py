"""Compile, sign, show and export passports."""
