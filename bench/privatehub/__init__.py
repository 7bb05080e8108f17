"""PrivateHub beside the generators that it is compared with."""
