# The manual page of one command from the table, -v command=NAME -v version=V. SPDX-License-Identifier: MIT
BEGIN { FS = "\t" }

# As roff takes it: hyphens are minus signs (options are copied), and no line begins with a request.
function safe(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	if (text ~ /^[.']/)
		text = "\\&" text
	return text
}

function title(text) {
	sub(/ \(.*/, "", text) # what it says in brackets is too long for a heading
	print ".SH " toupper(safe(text))
}

function option(name, argument,    plain) {
	print ".TP"
	plain = name
	if (sub(/\[no-\]/, "", plain))
		print "\\fB" safe(plain) "\\fR, \\fB" safe("--no-" substr(plain, 3)) "\\fR"
	else
		print "\\fB" safe(name) "\\fR" (argument == "" ? "" : " \\fI" safe(argument) "\\fR")
}

# Examples keep their lines; other text is a paragraph. A gap is a paragraph's end only where one was begun and one follows.
function text(line) {
	if (line == "") {
		gap = 1
		end_literal()
		return
	}
	if (line !~ /^  /)
		end_literal()
	if (said && (gap || (line ~ /^  / && !literal)))
		print ".PP"
	if (line ~ /^  / && !literal) {
		print ".nf\n.RS 2"
		literal = 1
	}
	print line ~ /^  / ? safe(substr(line, 3)) : safe(line)
	said = 1
	gap = 0
}

function end_literal() {
	if (literal)
		print ".RE\n.fi"
	literal = 0
}

$1 == "" && $2 == "item" { summaries[$3] = $4; names[++n] = $3 }
$1 == "" && $2 == "text" && $3 ~ /^exit codes: / { codes = substr($3, 13) }
$1 == command { lines[++m] = $0 }

END {
	page = "mural" (command == "" ? "" : "-" command)
	summary = command == "" ? "trains Vision Transformers with a team of workers" : summaries[command]
	print ".\\\" Made by scripts/manuals/make from the program's own help."
	print ".TH " toupper(safe(page)) " 1 \"\" \"Mural " version "\" \"Mural\""
	title("name")
	print safe(page) " \\- " safe(summary)
	title("synopsis")
	for (i = 1; i <= m; i++) {
		split(lines[i], f, FS)
		if (f[2] == "usage")
			print (used++ ? ".br\n" : "") "\\fB" safe(f[3]) "\\fR"
	}
	title("description")
	if (command == "")
		print "Mural is one native program and one C library; it needs no Python. Each command has a page of its own."
	for (i = 1; i <= m; i++) {
		split(lines[i], f, FS)
		if (f[2] == "usage" || (f[2] == "text" && f[3] ~ /^exit codes: /))
			continue
		if (f[2] == "text") {
			text(f[3])
			continue
		}
		end_literal()
		said = f[2] != "section"
		gap = 0
		if (f[2] == "section")
			title(f[3])
		if (f[2] == "item")
			print ".TP\n\\fB" safe(f[3]) "\\fR\n" safe(f[4])
		if (f[2] == "option") {
			option(f[3], f[4])
			print safe(f[5])
		}
	}
	end_literal()
	title("exit status")
	print safe(codes)
	title("see also")
	if (command != "")
		printf "\\fBmural\\fR(1), "
	for (i = 1; i <= n; i++)
		if (names[i] != command)
			printf "\\fBmural\\-%s\\fR(1), ", names[i]
	print "\\fBmural\\-config\\fR(5)"
}
