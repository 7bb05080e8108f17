"""Pecan Street's Dataport: homes in Texas, New York and California, by circuit."""
