/* How a report looks: colours for light and dark, and the page's style sheet. SPDX-License-Identifier: MIT */
#include "study/report_inside.h"

/* Neighbours differ in hue and in lightness, so that they can be told apart in grey and by most colour-blind people. */
const mu_colour mu_palette[MU_COLOURS] = {{"#2a6fdb", "#6aa5ff"}, {"#d9662b", "#ff9a5c"}, {"#12897b", "#3cc9b4"},
                                          {"#b0358f", "#f07fd0"}, {"#b98a00", "#e8bd3c"}, {"#4b3fa6", "#a79bff"},
                                          {"#6bb0d6", "#9bd3f0"}, {"#7b8494", "#98a2b3"}, {"#8a5a3c", "#c99a78"},
                                          {"#5a8f29", "#9fd45f"}, {"#c2334d", "#ff7d90"}, {"#45566e", "#b7c3d6"}};

const mu_colour mu_grid_colour = {"#dde1e8", "#343b47"};
const mu_colour mu_ink_colour = {"#1c2330", "#e8ebf0"};

static void print_colours(FILE *out, bool dark)
{
	fprintf(out, ":root{");
	for (int c = 0; c < MU_COLOURS; c++)
		fprintf(out, "--c%d:%s;", c, dark ? mu_palette[c].dark : mu_palette[c].light);
	fprintf(out, "--grid:%s;--ink:%s;", dark ? mu_grid_colour.dark : mu_grid_colour.light,
	        dark ? mu_ink_colour.dark : mu_ink_colour.light);
	fputs(dark ? "--soft:#a3adbb;--paper:#14171c;--card:#1c2027;--edge:#2c323c;--warm:#3a2f17;--link:#8ab8ff;}\n"
	           : "--soft:#586274;--paper:#f5f6f8;--card:#ffffff;--edge:#e0e4ea;--warm:#fff6df;--link:#1d5bbf;}\n",
	      out);
}

void mu_report_style_figures(FILE *out)
{
	print_colours(out, false);
	fprintf(out, "@media screen and (prefers-color-scheme:dark){\n");
	print_colours(out, true);
	fprintf(out, "}\n.figure{font-family:system-ui,'Segoe UI',Roboto,'Helvetica Neue','DejaVu "
	             "Sans',Arial,sans-serif;font-size:13px}\n"
	             ".figure text{fill:var(--soft)}.figure .name{fill:var(--ink)}.figure "
	             ".grid{stroke:var(--grid)}.figure .mark{stroke:var(--ink)}\n"
	             ".figure .hit{fill:transparent;stroke:none}.figure .hit:hover{fill:var(--ink);fill-opacity:.18}\n"
	             ".figure circle:hover{stroke:var(--ink);stroke-width:2}\n");
	for (int c = 0; c < MU_COLOURS; c++)
		fprintf(out, ".figure .f%d{fill:var(--c%d)}.figure .s%d{stroke:var(--c%d)}\n", c, c, c, c);
}

void mu_report_style_page(FILE *out)
{
	fputs("*{box-sizing:border-box}\n"
	      "html{background:var(--paper);color:var(--ink);-webkit-text-size-adjust:100%}\n"
	      "body{margin:0 auto;padding:clamp(16px,3vw,48px);max-width:1480px;font:16px/1.55 system-ui,'Segoe UI',\n"
	      "Roboto,'Helvetica Neue','DejaVu Sans',Arial,sans-serif}\n"
	      "h1,h2,h3{line-height:1.2;font-weight:650;overflow-wrap:anywhere}\n"
	      "h1{font-size:clamp(24px,3.2vw,36px);margin:0 0 4px}\n"
	      "h2{font-size:clamp(20px,2.2vw,26px);margin:48px 0 4px}\n"
	      "h3{font-size:16px;margin:0}\n"
	      "p{margin:0 0 12px;max-width:78ch;overflow-wrap:anywhere}\n"
	      "a{color:var(--link)}\n"
	      "code{font:.92em ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:nowrap}\n"
	      ".soft{color:var(--soft);font-size:14px}\n"
	      ".lead{font-size:clamp(17px,1.3vw,20px);margin:20px 0 0}\n"
	      ".notes{background:var(--warm);border-radius:10px;padding:14px 18px;margin:24px 0 0;max-width:90ch}\n"
	      ".notes ul{margin:6px 0 0;padding-left:20px;overflow-wrap:anywhere}\n",
	      out);
	fputs(".figures{columns:480px 2;column-gap:24px;margin-top:20px}\n"
	      "figure{display:inline-block;width:100%;break-inside:avoid;margin:0 0 24px;padding:18px;\n"
	      "background:var(--card);border:1px solid var(--edge);border-radius:12px}\n"
	      "figure svg{display:block;width:100%;max-width:540px;height:auto;margin:10px 0 4px}\n"
	      "figcaption{display:flex;justify-content:space-between;gap:12px;align-items:baseline}\n"
	      "figcaption a{font-size:13px;white-space:nowrap}\n"
	      "figure p{font-size:14px;color:var(--soft);margin:6px 0 0}\n"
	      ".table{overflow-x:auto;margin-top:12px}\n"
	      "table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums;min-width:100%}\n"
	      "th,td{padding:5px 10px;text-align:right;border-bottom:1px solid var(--edge);vertical-align:bottom}\n"
	      "th:first-child,td:first-child{text-align:left;padding-left:0}\n"
	      "th:last-child,td:last-child{padding-right:0}\n"
	      "thead{color:var(--soft)}th{font-weight:600}tbody th{font-weight:500;min-width:14ch}\n"
	      "td small{display:block;color:var(--soft);font-size:12px;white-space:nowrap}\n"
	      "details{margin-top:12px}summary{cursor:pointer;color:var(--soft);font-size:14px}\n"
	      "footer{margin-top:48px;color:var(--soft);font-size:13px}\n"
	      "@media (max-width:520px){figure{padding:12px;border-radius:8px}th,td{padding:5px 6px}}\n",
	      out);
	fputs("@media print{html{background:#fff}body{padding:0;max-width:none;font-size:10pt}\n"
	      "p{max-width:none}.lead{font-size:11pt;margin-top:4mm}figure p,.soft{font-size:8.5pt}\n"
	      ".figures{columns:auto}figure{display:block;break-inside:auto;border-color:#ccc;padding:3mm;margin-"
	      "bottom:4mm}\n"
	      "figure svg{width:100mm;margin:2mm "
	      "0;break-inside:avoid;break-after:avoid}figcaption{break-after:avoid}tr{break-inside:avoid}h2{break-"
	      "after:avoid;margin-top:8mm}figcaption "
	      "a,summary,footer{display:none}\n"
	      ".table{overflow:visible;margin-top:2mm}table{font-size:7.5pt}th,td{padding:.5mm 1.2mm}td "
	      "small{font-size:6.5pt}\n"
	      "details::details-content{content-visibility:visible;height:auto}}\n",
	      out);
}
