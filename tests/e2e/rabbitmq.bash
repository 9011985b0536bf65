# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# A private RabbitMQ node for end-to-end tests: own ports, name, database, log and EPMD, as the user of the test. The
# wrapper of the package would change to another user and directory, so the script behind it is used. Needs `folder`
# of helpers.bash.

free_port() {
        /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Prepares the node once; a later start keeps ports and database. Sets `rabbitmq_url`.
rabbitmq_environment() {
        [ -z "${rabbitmq_url-}" ] || return 0
        rabbitmq_port=$(free_port)
        rabbitmq_url=amqp://guest:guest@127.0.0.1:$rabbitmq_port//
        mkdir -p "$folder/rabbitmq"
        echo '[].' >"$folder/rabbitmq/enabled_plugins"
        : >"$folder/rabbitmq/rabbitmq.conf"
        # "Under systemd", the script becomes the node. Else it stays beside it, runs the slow rabbitmqctl after TERM, and
        # leaves the node behind after KILL.
        rabbitmq_variables=(HOME="$folder/rabbitmq" RUNNING_UNDER_SYSTEMD=true
                RABBITMQ_NODENAME="test-$rabbitmq_port@localhost"
                RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$rabbitmq_port" RABBITMQ_DIST_PORT="$(free_port)"
                ERL_EPMD_PORT="$(free_port)" ERL_EPMD_ADDRESS=127.0.0.1
                RABBITMQ_MNESIA_BASE="$folder/rabbitmq" RABBITMQ_LOG_BASE="$folder/rabbitmq" RABBITMQ_LOGS=-
                RABBITMQ_ENABLED_PLUGINS_FILE="$folder/rabbitmq/enabled_plugins"
                RABBITMQ_CONFIG_FILE="$folder/rabbitmq/rabbitmq.conf" RABBITMQ_CONF_ENV_FILE=/dev/null
                RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 1:1 +sbwt none" ERL_CRASH_DUMP_SECONDS=0)
}

# The port is open before the node accepts: its answer to a login counts.
rabbitmq_answers() { # SECONDS
        /usr/bin/python3 - "127.0.0.1:$rabbitmq_port" "$1" "/proc/$rabbitmq_pid" <<-'END'
	import amqp, os, sys, time
	end = time.monotonic() + float(sys.argv[2])
	while time.monotonic() < end and os.path.exists(sys.argv[3]):
	    try:
	        amqp.Connection(sys.argv[1], connect_timeout=5).connect()
	        sys.exit(0)
	    except OSError:
	        time.sleep(0.2)
	sys.exit(1)
	END
}

start_rabbitmq() {
        rabbitmq_environment
        launch epmd env "${rabbitmq_variables[@]}" epmd
        rabbitmq_epmd_pid=$!
        launch rabbitmq env "${rabbitmq_variables[@]}" /usr/lib/rabbitmq/bin/rabbitmq-server
        rabbitmq_pid=$!
        rabbitmq_answers 600
}

# TERM ends the node in order, KILL as a crash.
stop_rabbitmq() { # [SIGNAL]
        kill "-${1-TERM}" "$rabbitmq_pid" 2>/dev/null || true
        wait "$rabbitmq_pid" 2>/dev/null || true
        kill "$rabbitmq_epmd_pid" 2>/dev/null || true
        wait "$rabbitmq_epmd_pid" 2>/dev/null || true
}
