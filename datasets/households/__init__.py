"""Five homes of REFIT, UK-DALE and IDEAL, what they and some appliances take."""
