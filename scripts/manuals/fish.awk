# Completion for fish. SPDX-License-Identifier: MIT
function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/'/, "\\'", text)
	return "'" text "'"
}

END {
	print "# Completion of mural for fish; made by scripts/manuals/make from the program's own help."
	for (i = 1; i <= n_commands; i++)
		print "complete -c mural -n __fish_use_subcommand -f -a " commands[i] " -d " quoted(summary[commands[i]])
	for (i = 1; i <= n_commands; i++) {
		c = commands[i]
		seen = "complete -c mural -n '__fish_seen_subcommand_from " c "'"
		if (actions[c] != "")
			print seen " -a " quoted(actions[c])
		for (k = 1; k <= n_options[c]; k++) {
			takes = argument[c, k]
			words = choices(takes)
			print seen " -l " substr(options[c, k], 3) (takes == "" ? "" : words == "" ? " -r" : " -x -a " quoted(words)) " -d " quoted(about[c, k])
		}
	}
}
