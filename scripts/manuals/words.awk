# What the completion scripts share: reads the table into
#     commands[1..n], summary[command]
#     options[command, 1..n_options[command]], argument[command, i], about[command, i]; [no-] options are two
#     actions[command]: words that may follow the command, from its usage
# SPDX-License-Identifier: MIT
BEGIN { FS = "\t" }

function add(command, option, takes, help,    i) {
	i = ++n_options[command]
	options[command, i] = option
	argument[command, i] = takes
	sub(/ \[.*/, "", help) # the key in the file
	sub(/ \(default .*/, "", help)
	about[command, i] = help
}

# "fp32 bf16 fp16" of "fp32|bf16|fp16"; placeholders in capitals are no words.
function choices(takes,    n, parts, i, words) {
	if (takes !~ /[|]/)
		return ""
	n = split(takes, parts, "|")
	for (i = 1; i <= n; i++)
		if (parts[i] ~ /^[A-Za-z][A-Za-z0-9_.-]*$/ && parts[i] ~ /[a-z][a-z0-9]/)
			words = words (words == "" ? "" : " ") parts[i]
	return words
}

$1 == "" && $2 == "item" { commands[++n_commands] = $3; summary[$3] = $4 }
$1 != "" && $2 == "option" {
	if ($3 ~ /\[no-\]/) {
		plain = $3
		sub(/\[no-\]/, "", plain)
		add($1, plain, "", $5)
		add($1, "--no-" substr(plain, 3), "", "not: " $5)
	} else
		add($1, $3, $4, $5)
}
$1 != "" && $2 == "usage" {
	split($3, word, " ")
	if (word[3] ~ /^[a-z]+$/ && index(" " actions[$1] " ", " " word[3] " ") == 0)
		actions[$1] = actions[$1] (actions[$1] == "" ? "" : " ") word[3]
}
