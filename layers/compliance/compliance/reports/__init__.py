"""Write annual emissions reports and packs of evidence."""
