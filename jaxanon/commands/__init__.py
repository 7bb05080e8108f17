"""What each verb of the command line does; imports what is slow when it is needed."""
