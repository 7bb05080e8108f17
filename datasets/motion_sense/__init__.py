"""MotionSense: phone in the front pocket, 24 people, 6 activities."""
