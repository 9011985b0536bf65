/* SPDX-License-Identifier: MIT */
/* Rollouts over many hosts: progress and hosts. Hosts with problems and rolling hosts are visible at once. */
#include "web/html.h"
#include "web/page_sections.h"
#include "wire/reply_hosts.h"

/* With up to this many hosts, each has a row. */
#define SMALL_MAX 12
/* Maximum number of rows if there are more hosts; the other hosts are only named. */
#define ROWS_MAX 50

static void put_host(FILE *out, const json_t *rollout, const json_t *host)
{
        enum reply_host_state state = reply_host_state(host);
        const char *name = reply_string(host, "host"), *reported = reply_host_state_name(state);
        char why[REPLY_HOST_WHY_MAX], span[FORMAT_MAX];
        unsigned n, of;

        html_print(out, "<tr data-key=\"%s\"><th scope=\"row\">%s%s</th><td class=\"state %s\">", name, name,
                   reply_is_true(host, "here") ? " (here)" : "", reported);
        if (!reply_hosts_is_begun(rollout))
                html_print(out, "seen %s ago", reply_seconds(host, "seen_seconds", span));
        else if (state == REPLY_HOST_WAITING)
                html_print(out, "%s", reported);
        else
                html_print(out, "%s <span class=\"for\">%s%s</span>", reported,
                           reply_seconds(host, "seconds", span),
                           state == REPLY_HOST_DONE || state == REPLY_HOST_FAILED ? " ago" : "");
        html_print(out, "</td><td class=\"soft\">%s", reply_host_why(rollout, host, why));
        if (state == REPLY_HOST_ROLLING && reply_host_progress(host, &n, &of))
                page_bar(out, n, of, "fine");
        fputs("</td></tr>", out);
}

static bool has_row(const json_t *host)
{
        return reply_host_state(host) < REPLY_HOST_WAITING || reply_host_is_silent(host);
}

static void put_table(FILE *out, const json_t *rollout, const json_t *const *hosts, size_t n)
{
        html_print(
                out,
                "<table class=\"hosts\"><caption>Hosts of %s</caption><thead><tr><th scope=\"col\">Host</th>"
                "<th scope=\"col\">State</th><th scope=\"col\"><span class=\"hidden\">Waits for, or "
                "reason</span>"
                "</th></tr></thead><tbody>",
                reply_string(rollout, "group"));
        for (size_t i = 0; i < n; i++)
                put_host(out, rollout, hosts[i]);
        fputs("</tbody></table>", out);
}

/* Names the hosts of one state that have no row. seen: number of hosts before them, some of which may be in
 * that state. */
static void put_names(FILE *out, const json_t *const *hosts, size_t seen, size_t n,
                      enum reply_host_state state)
{
        size_t all = 0, first = 0;

        for (size_t i = 0; i < n; i++) {
                bool is = reply_host_state(hosts[i]) == state;

                all += is && i >= seen;
                first += is && i < seen;
        }
        if (all == 0)
                return;
        html_print(out, "<details data-key=\"%s\"><summary>%zu%s %s</summary><p class=\"note\">",
                   reply_host_state_name(state), all, first > 0 ? " more" : "", reply_host_state_name(state));
        for (size_t i = seen, k = 0; i < n; i++)
                if (reply_host_state(hosts[i]) == state)
                        html_print(out, "%s%s", k++ > 0 ? ", " : "", reply_string(hosts[i], "host"));
        fputs("</p></details>", out);
}

static void put_list(FILE *out, const json_t *rollout)
{
        size_t n = 0, seen = 0;
        _cleanup_free_ const json_t **hosts = reply_hosts_sort(rollout, &n);

        if (!hosts || n == 0)
                return;
        if (n <= SMALL_MAX)
                seen = n;
        while (seen < n && seen < ROWS_MAX && has_row(hosts[seen]))
                seen++;
        if (seen > 0)
                put_table(out, rollout, hosts, seen);
        for (int state = 0; state < _REPLY_HOST_MAX; state++)
                put_names(out, hosts, seen, n, (enum reply_host_state)state);
}

static void put_rollout(FILE *out, const json_t *rollout, const char *socket)
{
        struct reply_hosts count = reply_hosts_count(rollout);
        const char *fleet = reply_string(rollout, "fleet");
        char text[REPLY_HOSTS_MAX];

        html_print(out, "<section class=\"rollout\" data-key=\"rollout %s %s\"><h3>%s: %s</h3>", socket,
                   fleet, fleet, reply_hosts_title(rollout, text));
        page_note(out, "details", reply_hosts_details(rollout, text));
        if (reply_hosts_is_begun(rollout)) {
                html_print(out, "<p class=\"progress wide\"><b>%s</b>", reply_hosts_progress(rollout, text));
                page_bar(out, count.share, 1, reply_is(rollout, "state", "halted") ? "over" : "fine");
                fputs("</p>", out);
        }
        page_note(out, "error", reply_string(rollout, "error"));
        page_note(out, "trouble", reply_string(rollout, "trouble"));
        page_note(out, "waits", reply_string(rollout, "waits_for"));
        page_note(out, "left", reply_hosts_left(rollout, text));
        put_list(out, rollout);
        fputs("</section>", out);
}

void page_hosts(FILE *out, const struct page *page)
{
        const json_t *instance, *rollout;
        size_t n = 0;

        page_foreach_entry(page, "rollouts", instance, rollout) {
                if (n++ == 0)
                        page_section(out, "hosts", "Rollouts over hosts");
                put_rollout(out, rollout, reply_string(instance, "socket"));
        }
        if (n > 0)
                fputs("</section>", out);
}
