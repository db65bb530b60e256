# A help text as a table, -v command=NAME ("" for `mural --help`). Lines, separated by tabs:
#     command usage   TEXT                 a line of the usage
#     command text    TEXT                 a line outside sections; two spaces in front: an example; empty: a paragraph ends
#     command section TITLE
#     command item    NAME HELP            of a list of names
#     command option  NAME ARGUMENT HELP   --name, "" or what it takes; [no-] stays in the name
# SPDX-License-Identifier: MIT
BEGIN { OFS = "\t" }

function flush() {
	if (kind != "")
		print command, kind, name, (kind == "option" ? argument OFS : "") help
	kind = ""
}

# "--name ARGUMENT   help": two spaces end the left side. A left side that fills its column has only one behind it.
function option(line,    cut, left) {
	line = substr(line, 3)
	cut = index(line, "  ")
	if (!cut && length(line) > 27)
		cut = substr(line, 27, 1) == " " ? 27 : substr(line, 28, 1) == " " ? 28 : 0
	left = cut ? substr(line, 1, cut - 1) : line
	help = cut ? substr(line, cut) : ""
	sub(/^ +/, "", help)
	cut = index(left, " ")
	name = cut ? substr(left, 1, cut - 1) : left
	argument = cut ? substr(left, cut + 1) : ""
	kind = "option"
}

/\t/ { gsub(/\t/, " ") }
/^usage: / { sub(/^usage: /, ""); print command, "usage", $0; in_usage = 1; next }
in_usage && /^       / { sub(/^ +/, ""); print command, "usage", $0; next }
{ in_usage = 0 }
/^  -/ { flush(); option($0); next }
kind != "" && /^                    / { sub(/^ +/, ""); help = help (help == "" ? "" : " ") $0; next }
/^[^ ].*:$/ { flush(); print command, "section", substr($0, 1, length($0) - 1); listed = 1; next }
listed && /^  [a-z]/ && match($0, /^  [a-z][a-z-]*  */) {
	flush()
	kind = "item"
	name = $1
	help = substr($0, RLENGTH + 1)
	next
}
{ flush(); if ($0 ~ /^[^ ]/) listed = 0; print command, "text", $0 }
END { flush() }
