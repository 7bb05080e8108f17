"""The method contract, runs, releases and checks shared by all packages."""
