"""Every anonymizer under one protocol, beside what papers report."""
