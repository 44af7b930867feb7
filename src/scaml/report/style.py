"""The page's style sheet and the script that draws its charts: no network, no font but the system's."""

from __future__ import annotations

__all__ = ["CSS", "DRAW"]

CSS = """
:root { --ink: #24292f; --grey: #5b6570; --line: #e6e8eb; --blue: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: var(--ink); line-height: 1.55; font-size: 16px;
  font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 40px 32px 64px; }
h1 { font-size: 28px; line-height: 1.25; font-weight: 600; margin: 0 0 6px; overflow-wrap: anywhere; }
h2 { font-size: 20px; font-weight: 600; margin: 0 0 8px; }
h3 { font-size: 16px; font-weight: 600; margin: 22px 0 6px; }
p { margin: 0 0 10px; max-width: 78ch; overflow-wrap: anywhere; }
.lead, .note, footer { color: var(--grey); }
.note { font-size: 14px; }
section { border-top: 1px solid var(--line); margin-top: 36px; padding-top: 26px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 16px;
  margin: 18px 0 22px; padding: 0; }
.tiles div { background: #f6f8fa; border-radius: 8px; padding: 12px 16px; min-width: 0; }
.tiles dt { font-size: 13px; color: var(--grey); overflow-wrap: anywhere; }
.tiles dd { margin: 0; font-size: 21px; font-weight: 600; overflow-wrap: anywhere; }
.panels { display: grid; gap: 8px 20px; margin: 14px 0 6px; grid-template-columns: 1fr; }
.panels.many { grid-template-columns: repeat(auto-fill, minmax(min(300px, 100%), 1fr)); }
.panels.pair { grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); }
.panels.narrow { max-width: 640px; }
.chart { width: 100%; min-width: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; list-style: none; margin: 14px 0 0; padding: 0;
  font-size: 14px; color: var(--grey); }
.legend li { display: flex; align-items: center; gap: 8px; overflow-wrap: anywhere; }
.legend svg { flex: none; }
.scroll { overflow-x: auto; margin: 12px 0; }
table { border-collapse: collapse; font-size: 14px; min-width: min(420px, 100%); }
th, td { text-align: left; vertical-align: top; padding: 6px 20px 6px 0; min-width: 7em;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; }
tbody th { font-weight: 400; color: var(--grey); max-width: 22em; }
td { font-variant-numeric: tabular-nums; }
tr.strong td, tr.strong th { font-weight: 600; color: var(--ink); }
td span { display: block; }
td span.remark { font-weight: 400; color: var(--grey); max-width: 20em; }
.warning { border-left: 3px solid #d55e00; padding-left: 12px; }
details { margin: 8px 0; font-size: 14px; }
summary { cursor: pointer; color: var(--blue); }
ul.plain { padding-left: 20px; margin: 0 0 10px; overflow-wrap: anywhere; }
footer { border-top: 1px solid var(--line); margin-top: 40px; padding-top: 16px; font-size: 13px;
  overflow-wrap: anywhere; }
@media (max-width: 760px) { main { padding: 24px 18px 48px; } h1 { font-size: 23px; } }
@media print { section { break-inside: avoid; } details { display: none; } }
"""

DRAW = """
"use strict";
for (const chart of JSON.parse(document.getElementById("charts").textContent)) {
  Plotly.newPlot(chart.id, chart.figure.data, chart.figure.layout,
    {responsive: true, displayModeBar: false});
}
"""
