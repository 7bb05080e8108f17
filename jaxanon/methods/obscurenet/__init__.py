"""ObscureNet and the attribute-specific autoencoders that it is compared with."""
