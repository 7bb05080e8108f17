"""UCI HAR: phone on the waist, 30 people, 6 activities, in windows as published."""
