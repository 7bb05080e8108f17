"""The contract of a method, runs, releases and the checks that all packages share."""
