"""Sleep-EDF: nights of ten people as EEG features of each epoch."""
