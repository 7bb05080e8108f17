"""UCI HAPT: phone on the waist, 30 people, 6 activities and 6 postural transitions."""
