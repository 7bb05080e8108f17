"""Common types of the sensors and activities of seven homes."""

import re

# Functional types of sensors, and patterns of their names. Original names are Dutch and
# English; in Ordonez's homes a sensor is followed by its room. Each type occurs in at
# least three homes, so that it is seen even if two homes are held out.
TYPES = {
    "entrance": r"front ?door.*|keys|maindoor entrance|foyer,.*|porch,.*|hallway,.*",
    "bathroom": r"hall-(toilet|bathroom) door|toilet door|pir badkamer|"
    r"door downstairs toilet|bathroom,(door|light switch|exhaust fan)",
    "toilet": r"(bathroom,)?toilet flush.*|toilet bathroom",
    "bath": r"bath lift left|bathtub pir|bathroom,shower faucet.*|shower bathroom",
    "basin": r"sink top flush|bathroom,sink faucet.*|basin bathroom",
    "bathroom storage": r"bathroom,(medicine cabinet|cabinet).*|cabinet bathroom",
    "bed": r"press bed (rechts|links)|(mat bed|bed mat) .*|bed bedroom",
    "bedroom": r"(hall-)?bedroom door1?|pir slaapkamer|kwik dresser|dresser pir|"
    r"bedroom,.*|door bedroom",
    "fridge": r"fridge( kitchen)?|freezer( drove)?|refrigerator reed|"
    r"kitchen,(refrigerator|freezer).*",
    "stove": r"kwik stove lid|kitchen,(burner|oven).*|cooktop kitchen",
    "heating": r"microwave( reed| kitchen)?|magnetron|toaster( kitchen)?|"
    r"kitchen,(microwave|toaster|coffee machine)",
    "crockery": r"(cups|plates) cupboard|cupboard plates|kwik cutlary drawer|"
    r"cutlery drawer .*|cabinet cups/.*",
    "kitchen storage": r"(pans|groceries) cupboard|cupboard (groceries|kitchen)|"
    r"table (pans|scraps) .*|table pans|cabinet signs/.*|"
    r"kitchen,(cabinet|drawer|cereal|containers).*|butlers pantry,(cabinet|drawer).*|"
    r"dinning room,(cabinet|drawer).*",
    "sink": r"dishwasher|gootsteen float|"
    r"kitchen,(dishwasher|garbage disposal|sink faucet.*)",
    "kitchen": r"pir keuken1?|door kitchen|kitchen,(light switch|door|window).*|"
    r"butlers pantry,light switch",
    "laundry": r"washing machine|kitchen,(washing machine|laundry dryer)|"
    r"bathroom,hamper",
    "seat": r"matt couch living room|seat living",
    "living": r"door living|(living room|den|office/study),.*|"
    r"dinning room,light switch",
}

# Classes of activities, and patterns of their names in the files.
ACTIVITIES = {
    "leave": "leave-house|going-out-.*|leaving",
    "sleep": "go-to-bed|sleeping",
    "toilet": "use-toilet|toileting",
    "bathe": "take-shower|bathing|showering",
    "groom": "brush-teeth|grooming|washing-hands|dressing",
    "breakfast": "prep-breakfast|preparing-breakfast|breakfast",
    "lunch": "preparing-lunch|lunch",
    "dinner": "prep-dinner|preparing-dinner|dinner",
    "snack": "get-drink|preparing-a-(snack|beverage)|snack",
    "leisure": "spare_time/tv|watching-tv|listening-to-music|resting|"
    "talking-on-telephone",
    "housework": "washing-dishes|putting-away-.*|cleaning|doing-laundry|"
    "taking-out-the-trash|lawnwork|pet-care",
    "other": "work-at-home|eating|taking-medication|home-education|"
    "working-at-computer|other",
}


def type_of(home: str, sensor: str) -> int:
    """Returns a sensor's index in ``TYPES``; raises ValueError if unknown."""
    return _find("sensor", TYPES, home, sensor)


def class_of(home: str, activity: str) -> int:
    """Returns an activity's index in ``ACTIVITIES``; raises ValueError if unknown."""
    return _find("activity", ACTIVITIES, home, activity)


def _find(category, table, home, name):
    for index, pattern in enumerate(table.values()):
        if re.fullmatch(pattern, name.strip().lower()):
            return index
    raise ValueError(
        f"home {home} must have a known {category}, got {name!r}; "
        "download its files again."
    )
