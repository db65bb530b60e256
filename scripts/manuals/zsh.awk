# Completion for zsh. SPDX-License-Identifier: MIT
function quoted(text) {
	gsub(/'/, "'\\''", text)
	return text
}

# In a description brackets and colons would end it.
function described(text) {
	gsub(/\\/, "\\\\&", text)
	gsub(/\[/, "\\[", text)
	gsub(/\]/, "\\]", text)
	gsub(/:/, "\\:", text)
	return quoted(text)
}

function value(takes,    words) {
	words = choices(takes)
	if (takes == "")
		return ""
	return ":" described(takes) ":" (words != "" ? "(" words ")" : "_files")
}

END {
	print "#compdef mural"
	print "# Made by scripts/manuals/make from the program's own help."
	print "local -a commands=("
	for (i = 1; i <= n_commands; i++)
		print "\t'" commands[i] ":" quoted(summary[commands[i]]) "'"
	print ")"
	print "if (( CURRENT == 2 )); then"
	print "\t_describe command commands"
	print "\treturn"
	print "fi"
	print "local command=$words[2]"
	print "shift words"
	print "(( CURRENT-- ))"
	print "case $command in"
	for (i = 1; i <= n_commands; i++) {
		c = commands[i]
		print c ")"
		print "\t_arguments \\"
		for (k = 1; k <= n_options[c]; k++)
			print "\t\t'" options[c, k] "[" described(about[c, k]) "]" value(argument[c, k]) "' \\"
		print "\t\t'*:" (actions[c] != "" ? "action:(" actions[c] ")" : "file:_files") "'"
		print "\t;;"
	}
	print "esac"
}
