#!/bin/bash
# T08: the calls of one client of the address book service while another client runs hostile queries, compared with
# evolution-data-server.
#
#   bench/T08-service.sh [--quick] [--no-eds]
#
# A client reads single cards by UID, alone and while another client runs queries of 39 KB whose 700 terms no index answers,
# over 1,280 generated contacts. The floor is the same call of the same service without the queries. Larder and
# evolution-data-server run one after the other; a query takes evolution-data-server about 20 seconds (--no-eds skips it). The
# exit code is 1 if the goal is missed: 5 ms at the 99th percentile. --quick: 100 contacts, without the goal.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
contacts_number=1280
calls=5000
queries=8
eds_queries=2
eds=yes
for option; do
	case $option in
	--quick) contacts_number=100 calls=200 queries=2 eds_queries=1 ;;
	--no-eds) eds= ;;
	*) echo "bench/T08-service.sh [--quick] [--no-eds]" >&2 && exit 2 ;;
	esac
done
build
workplace
machine
prepare_eds hostile_bench || exit 1
cards=$(book $contacts_number)
figures=$work/figures

measure() { # SERVICE QUERIES COMMAND...: runs the program with a service
	local service=$1 number=$2
	shift 2
	bench/eds/with_private_bus.sh "$@" "$work/hostile_bench" "$cards" $calls "$number" |
		awk -v OFS='\t' -v who="$service" '{ print who, $0 }' >>"$figures"
}

measure larder $queries bench/eds/with_larder_serve.sh "$larder"
[ -z "$eds" ] || measure eds $eds_queries
awk -F '\t' -v goals=$((contacts_number == 1280)) -v n=$contacts_number -v results="$work/results" '
	{ median[$1, $2] = $3; p99[$1, $2] = $4; most[$1, $2] = $5; calls[$1, $2] = $6 }
	function ms(x) { return x == "" ? "-" : sprintf("%.2f", x / 1000) }
	function ratio(a, b) { return a == "" || !b ? "-" : sprintf("%.1f", a / b) }
	function row(name, of, column) {
		printf "%-34s %11s %11s %11s\n", name, ms(of["larder", column]), ms(of["eds", column]),
			ratio(of["eds", column], of["larder", column])
		for (i = split("larder eds", who, " "); i > 0; i--)
			if ((who[i], column) in of) printf "%s\tus\t%s\t%d\t%s\tless\n", name, who[i], n, of[who[i], column] >>results
	}
	END {
		printf "%-34s %11s %11s %11s\n", "ms", "larder", "eds", "eds/larder"
		row("a hostile query, median", median, "query")
		row("by UID alone (floor), median", median, "alone")
		row("by UID alone (floor), p99", p99, "alone")
		row("by UID beside queries, median", median, "beside")
		row("by UID beside queries, p99", p99, "beside")
		row("by UID beside queries, longest", most, "beside")
		printf "\n%d calls of Larder beside %d queries; p99 beside / alone: %s\n", calls["larder", "beside"], calls["larder", "query"],
			ratio(p99["larder", "beside"], p99["larder", "alone"])
		missed = goals && p99["larder", "beside"] > 5000
		if (goals) print missed ? "MISSED: p99 at most 5 ms" : "the goal is met: p99 at most 5 ms"
		exit missed
	}' "$figures" || missed=1
leave_results contacts
exit ${missed:-0}
