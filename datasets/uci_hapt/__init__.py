"""UCI HAPT: 30 people, 6 activities and 6 postural transitions, phone on the waist."""
