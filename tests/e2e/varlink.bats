#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The control socket for other clients: a plain client and systemd's varlinkctl get what the description of the
# interface states.
# seconds: 20
# promises: none
load helpers

@test "a plain Varlink client drives every method, and each answer matches the description" {
        start_fleet
        run ruby -W0 "$e2e/varlink.rb" "$SQMGR_SOCKET"
        echo "$output"
        [ "$status" = 0 ]
        [[ $output == *Reexec*Restart*Scale* ]]
        wait_until 20 ready 3
}

@test "varlinkctl introspects the interface, calls its methods and follows a restart" {
        command -v varlinkctl >/dev/null || skip 'there is no varlinkctl: systemd before 255'
        start_fleet
        run -0 varlinkctl info "$SQMGR_SOCKET"
        [[ $output == *org.sqmgr.Control* ]]
        run -0 varlinkctl list-interfaces "$SQMGR_SOCKET"
        [[ $output == *org.sqmgr.Control* ]]
        # It parses the description, and shows it in its own format.
        run -0 varlinkctl introspect "$SQMGR_SOCKET" org.sqmgr.Control
        for method in GetStatus Restart Follow Abort Quiet Stop Start Scale Reload Reexec GetEvents Ping GetVersion; do
                [[ $output == *"method $method"* ]]
        done
        run -0 varlinkctl -j call "$SQMGR_SOCKET" org.sqmgr.Control.GetStatus '{"fleets":["default"]}'
        jq -e '.fleets[0].active == 2' <<<"$output"
        run -0 varlinkctl -j --more call "$SQMGR_SOCKET" org.sqmgr.Control.Restart '{"wait":"drained"}'
        tail -n 1 <<<"$output" | tr -d '\036' | jq -e '.fleets[0].state == "done"'
        run varlinkctl -j call "$SQMGR_SOCKET" org.sqmgr.Control.GetStatus '{"fleets":["nosuch"]}'
        [ "$status" -ne 0 ]
        [[ $output == *UnknownFleet* ]]
}
