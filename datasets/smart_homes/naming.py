"""What sensors and activities of seven homes are called, told in common words."""

import re

# Functional types of sensors, and the names that are of each. The residents' own words
# were Dutch and English; of Ordonez's sensors the room follows. Every type occurs in
# three homes at least, so that a type is seen even where two homes are left out.
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

# Classes of activities, and the names that are of each, as the homes' files have them.
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
    """Index of a sensor's type in ``TYPES``; ValueError for one that has none."""
    return _find("sensor", TYPES, home, sensor)


def class_of(home: str, activity: str) -> int:
    """Index of an activity in ``ACTIVITIES``; ValueError for one that has none."""
    return _find("activity", ACTIVITIES, home, activity)


def _find(what, table, home, name):
    for index, pattern in enumerate(table.values()):
        if re.fullmatch(pattern, name.strip().lower()):
            return index
    raise ValueError(
        f"home {home} has the {what} {name!r}, which is none of the original data's; "
        "its files were changed, get them anew."
    )
