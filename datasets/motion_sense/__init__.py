"""MotionSense: 24 people, 6 activities, phone in the front pocket."""
