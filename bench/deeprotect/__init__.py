"""DEEProtect over its budget."""
