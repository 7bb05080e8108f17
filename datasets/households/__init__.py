"""Power of five homes of REFIT, UK-DALE and IDEAL and of some appliances."""
