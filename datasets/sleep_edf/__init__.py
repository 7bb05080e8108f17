"""Sleep-EDF: the nights of ten people, epoch by epoch, as features of their EEG."""
