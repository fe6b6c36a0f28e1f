#!/bin/sh
# Starts a NATS server again that stores nothing any more. A server whose disk was full (2.15 was measured) refuses every write to
# the stream that met it, and one of a cluster turns JetStream off; both until they are restarted, also when there is space
# again. /healthz says so. The brain's own server is looked after by the brain: this is for servers of a site's own, one
# beside each of them.
#
#   health.sh http://127.0.0.1:8222 /var/lib/nats systemctl restart nats-server
#
# Nothing is done while less than NEEDED_MB are free in the folder of its streams, while the server does not answer, or for any
# other reason for which it is unwell (one that reads its streams after a start is left alone).
set -u

url=${1:?"usage: health.sh URL FOLDER COMMAND [ARGUMENT ...]"}
folder=${2:?"the folder of its streams (store_dir)"}
shift 2
[ $# -gt 0 ] || { echo "no command that restarts the server" >&2; exit 2; }
command -v curl >/dev/null || { echo "install curl" >&2; exit 2; }
every_s=${EVERY_S:-5}
pause_s=${PAUSE_S:-60} # after a restart
needed_mb=${NEEDED_MB:-32}

said=""
while sleep "$every_s"; do
    case $(curl --silent --max-time 5 "$url/healthz") in
    *"write error"* | *"JetStream not enabled"*) ;;
    *)
        said=""
        continue
        ;;
    esac
    free_mb=$(df --output=avail --block-size=1M "$folder" | tail -n 1)
    if [ "$free_mb" -ge "$needed_mb" ]; then
        echo "the NATS server stores nothing, although there is space: $*" >&2
        "$@"
        sleep "$pause_s"
    elif [ -z "$said" ]; then
        echo "the NATS server stores nothing, and $folder has $free_mb MiB free: make room for at least $needed_mb MiB" >&2
        said=yes
    fi
done
