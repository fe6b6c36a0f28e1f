#!/bin/sh
# The power of a simulated chassis, called by ipmi_sim: chassis.sh FOLDER check|get|set NAME [VALUE] ...
# The node is a process: its power is on while the process lives. FOLDER/hangs: its operating system
# ignores us. FOLDER/freezes: the BMC takes a request and answers nothing while the file is there.
folder=$1; op=$2; shift 2
echo "$op $*" >> "$folder/chassis.log"
pid=$(cat "$folder/node.pid" 2>/dev/null)
alive() { [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; }
off() { alive && kill -KILL "$pid"; rm -f "$folder/node.pid"; }
on() { setsid sleep 600 < /dev/null > /dev/null 2>&1 & echo $! > "$folder/node.pid"; }
case $op in
  get) for name in "$@"; do
      case $name in
        power) if alive; then echo power:1; else echo power:0; fi ;;
        boot) echo boot:default ;;
        *) echo "$name:0" ;;
      esac
    done ;;
  set) while [ -e "$folder/freezes" ]; do sleep 0.1; done # the request has come, and its answer does not go
    while [ $# -gt 0 ]; do
      case $1 in
        power) if [ "$2" = 0 ]; then off; elif ! alive; then on; fi ;;
        reset) off; on ;;
        shutdown) [ -e "$folder/hangs" ] || off ;;
      esac
      shift 2
    done ;;
esac
exit 0
