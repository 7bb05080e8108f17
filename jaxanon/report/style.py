"""The page's style sheet."""

STYLE = """
:root { --ink: #1c2430; --soft: #5b6675; --paper: #f6f7f9; --card: #fff;
  --line: #dde2e8; --accent: #0b6aa6; --worst: #b34700; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7ebf0; --soft: #a3aebb; --paper: #14181d; --card: #1d232a;
    --line: #343d48; --accent: #6cb8ea; --worst: #ff9a57; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: clamp(1.4rem, 4vw, 2rem); line-height: 1.2; margin: .2rem 0 1.2rem; }
h2 { font-size: 1.2rem; margin: 0 0 .8rem; }
.kicker { color: var(--soft); margin: 0; font-size: .9rem; }
section { background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem; padding: 1.1rem 1.2rem; margin: 0 0 1.2rem; }
.headline { border-left: .35rem solid var(--accent); font-size: 1.08rem; }
.headline p { margin: .35rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .6rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; font-size: .88rem; }
th:first-child, td:first-child { text-align: left; }
thead th { white-space: normal; vertical-align: bottom; }
.worded th:nth-child(2), .worded td:nth-child(2) { text-align: left; }
td.key { font-weight: 650; }
td.worst { color: var(--worst); }
figure { margin: 0 0 1rem; }
figure .scroll { background: #fff; border-radius: .5rem; padding: .4rem; }
img { display: block; max-width: 100%; margin: 0 auto; }
figcaption, .note { color: var(--soft); font-size: .9rem; margin: .5rem 0 0; }
summary { cursor: pointer; padding: .3rem 0; color: var(--accent); }
dt { font-weight: 650; margin-top: .7rem; }
dd { margin: .1rem 0 0; color: var(--ink); }
pre { overflow-x: auto; font-size: .82rem; }
@media (max-width: 40rem) {
  section { padding: .9rem .8rem; }
  th, td { padding: .35rem .4rem; font-size: .9rem; }
  td:nth-child(1), td:nth-child(2) { white-space: normal; min-width: 6.5rem; }
  img { max-width: none; width: 40rem; }
  #windows img { width: 60rem; } }
"""
