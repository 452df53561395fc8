//! The report's style sheet: light and dark, narrow and wide, printed.

pub(super) const STYLE: &str = r#"
:root{color-scheme:light dark;--ink:#24292f;--soft:#57606a;--ground:#fff;--card:#f6f8fa;
--rule:#d0d7de;--link:#0a5bb5;--good:#176f2c;--bad:#b42318;--note:#57606a}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa4af;--ground:#0d1117;
--card:#161b22;--rule:#30363d;--link:#6cb6ff;--good:#56d364;--bad:#ff8078;--note:#9aa4af}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1100px;padding:1rem;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:.6em 0 .3em}
h2{font-size:1.35rem;line-height:1.25;margin:2em 0 .4em;padding-top:.6em;border-top:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.4em 0 .3em}
a{color:var(--link)}
.soft{color:var(--soft)}
.small{font-size:.875rem}
code{font-size:.9em;overflow-wrap:anywhere}
.scroll{overflow-x:auto;-webkit-overflow-scrolling:touch}
table{border-collapse:collapse;font-size:.875rem;margin:.4rem 0}
th,td{border-bottom:1px solid var(--rule);padding:.3rem .6rem;text-align:left;vertical-align:top}
th{border-bottom-width:2px;white-space:nowrap}
.n{text-align:right;font-variant-numeric:tabular-nums}
.claims{width:100%}
.claims td.id{min-width:6rem;font-weight:600}
.claims td.figure,.claims td.where{white-space:nowrap}
.counts th{white-space:normal}
.reference{font-style:italic;margin:.2rem 0}
.claims .why td{color:var(--soft);padding-top:0;white-space:pre-line}
.claims tr:has(+ .why) td{border-bottom:0}
.assumption{color:var(--note);font-weight:600}
.scroll table:not(.claims) td:first-child,.scroll table:not(.claims) th:first-child{
position:sticky;left:0;background:var(--ground)}
.scroll table:not(.claims) td{max-width:26rem}
h2.paper{font-size:1.5rem;border-top-width:3px}
.holds{color:var(--good);font-weight:600}
.fails{color:var(--bad);font-weight:600}
.note{color:var(--note)}
figure{margin:1rem 0}
.plot svg{display:block;width:100%;max-width:860px;min-width:520px;height:auto;
border:1px solid var(--rule);border-radius:8px}
details{margin:.4rem 0 1rem}
summary{cursor:pointer;color:var(--link);font-size:.9rem}
nav ul{columns:22rem;column-gap:2rem;padding-left:1.2rem;margin:.3rem 0}
nav li{break-inside:avoid}
.notes li{margin:.25rem 0;overflow-wrap:anywhere}
@media screen and (max-width:720px){
.claims thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.claims,.claims tbody,.claims tr,.claims td{display:block;width:100%}
.claims tr{border:1px solid var(--rule);border-radius:8px;margin:.6rem 0;padding:.4rem .2rem}
.claims td{border:0;padding:.15rem .6rem;text-align:left}
.claims td[data-l]:not(:empty)::before{content:attr(data-l) ": ";color:var(--soft)}
}
@media print{
body{max-width:none;padding:0;font-size:10pt}
a{color:inherit;text-decoration:none}
.scroll{overflow:visible}
table{font-size:7.5pt}
th,td{padding:.1rem .3rem}
th{white-space:normal}
.plot svg{min-width:0;max-width:17cm}
.plot,tr{break-inside:avoid}
.small,.claims .why{font-size:7.5pt}
h2,h3{break-after:avoid}
details:not([open],.long)::details-content{content-visibility:visible;block-size:auto}
summary{color:inherit}
}
"#;
