"""UCI HAR: 30 people, 6 activities, phone on the waist, in published windows."""
