"""What an exported model costs on a device."""
