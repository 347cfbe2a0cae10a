"""Watch what permits ask for: samples, run hours, renewals and further modules."""
