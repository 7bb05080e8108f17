"""DEEProtect: features released with local differential privacy."""
