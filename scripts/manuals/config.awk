# mural-config(5) from `mural train --help-config`, -v version=V: a key, then its type, then its meaning, indented.
# SPDX-License-Identifier: MIT
function safe(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	if (text ~ /^[.']/)
		text = "\\&" text
	return text
}

BEGIN {
	print ".\\\" Made by scripts/manuals/make from the program's own help."
	print ".TH MURAL\\-CONFIG 5 \"\" \"Mural " version "\" \"Mural\""
	print ".SH NAME\nmural\\-config \\- keys of a configuration file"
	print ".SH DESCRIPTION"
	print "A DeepSpeed configuration, read as HJSON, with Mural's own settings in the block \\fBmural\\fR."
	print "Keys are shown with the blocks they stand in. \\fBmural train \\-\\-show\\-config\\fR prints every value in"
	print "force and where it came from."
	print ".SH KEYS"
}
/^[^ ]/ { print ".TP\n\\fB" safe($0) "\\fR"; first = 1; next }
{ sub(/^ +/, ""); print (first ? "\\fI" safe($0) "\\fR\n.br" : safe($0)); first = 0 }
END { print ".SH SEE ALSO\n\\fBmural\\fR(1), \\fBmural\\-train\\fR(1)" }
