"""All anonymizers under one protocol, with published results."""
