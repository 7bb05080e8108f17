"""MobiAct v2: phone in the trouser pocket, activities of daily living and falls."""
