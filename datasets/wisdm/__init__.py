"""WISDM: 51 people, 18 activities, watch on the wrist."""
