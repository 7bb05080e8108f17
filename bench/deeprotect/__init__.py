"""DEEProtect's accuracy over its privacy budget."""
