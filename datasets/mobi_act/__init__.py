"""MobiAct v2: 4 activities of daily living, phone in the trouser pocket."""
