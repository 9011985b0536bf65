/* SPDX-License-Identifier: MIT */
/* Three hosts take turns through one Redis, of which one failover undoes the last call, or which is emptied, or told to
 * forget a host; tests/check-spin runs it.
 *
 * It models src/rollout_hosts/script_rules.c and group_rules.c once more, in another language and from their description:
 * one host at a time, no failure allowed. Time is what it allows: a turn is lost only of a host that cannot reach Redis,
 * since all others renew theirs within a lease; and a lease is over once all that can reach Redis have asserted their
 * turns. A failover undoes one call at most that took a turn, since turns are a second apart. */

#define HOSTS 3
#define ALLOWED 0

#define WAITING 0
#define ROLLING 1
#define LOST    2
#define FAILED  3
#define DONE    4
#define NOBODY  5 /* it was forgotten, or all hosts were */

#define RUNNING 0
#define HALTED  1
#define OVER    2
#define ABORTED 3

/* An epoch is its number and its id; ids are the order in which they were begun. */
typedef Keys {
        byte number, id, state;
        bool held; /* nobody takes a turn before a lease is over */
        byte its[HOSTS]
};
typedef Host {
        byte number, id, other;
        byte its;
        bool rolls;  /* its workers are being replaced, whatever Redis thinks */
        bool undone; /* the call that took its turn was */
        bool out;    /* cannot reach Redis */
        bool gone;   /* could not, was forgotten, or Redis had lost its epoch; and has not said since that it rolls */
        bool waits   /* no lease is over since its connection came up */
};

Keys redis, replica;
Host host[HOSTS];
byte ids = 1, failovers = FAILOVERS, begins = BEGINS, outages = OUTAGES, forgets = FORGETS, flushes = FLUSHES, failures = 1;
byte rolling, undone;

#define COUNT(state) ((redis.its[0] == state) + (redis.its[1] == state) + (redis.its[2] == state))
#define HELD(keys, h) (keys.its[h] == ROLLING || keys.its[h] == LOST)
#define KNOWN(h) (host[h].number == redis.number && host[h].id == redis.id)
/* Each that rolls and can reach Redis has said so there, unless Redis has lost the epoch that it rolls for. */
#define SAID(h) (!host[h].rolls || host[h].out || redis.its[h] == ROLLING || \
        (redis.number <= host[h].number && !KNOWN(h)))
/* Nobody begins beside one that rolls for the same epoch, and could say so all the while. */
#define BESIDE(h) (host[h].rolls && !host[h].gone && KNOWN(h))
#define LEASE_OVER (SAID(0) && SAID(1) && SAID(2))

inline copy(from, to) {
        to.number = from.number; to.id = from.id; to.state = from.state; to.held = from.held;
        to.its[0] = from.its[0]; to.its[1] = from.its[1]; to.its[2] = from.its[2]
}

inline judge() {
        if
        :: redis.state == RUNNING || redis.state == HALTED ->
                if
                :: COUNT(LOST) + COUNT(FAILED) > ALLOWED -> redis.state = HALTED
                :: else ->
                        if
                        :: COUNT(WAITING) + COUNT(ROLLING) == 0 -> redis.state = OVER
                        :: else -> redis.state = RUNNING
                        fi
                fi
        :: else
        fi
}

/* Whatever was called before may have reached the replica; what took a turn has. */
inline replicate_or_not() {
        if
        :: copy(redis, replica)
        :: skip
        fi
}

inline start(h) {
        host[h].its = ROLLING;
        host[h].gone = false;
        if
        :: !host[h].rolls -> host[h].rolls = true; rolling++
        :: else
        fi
}

inline ended(h, how) {
        host[h].its = how;
        host[h].rolls = false;
        rolling--;
        if
        :: host[h].undone -> host[h].undone = false; undone--
        :: else
        fi
}

#define MAY_TAKE(h) (redis.state == RUNNING && !redis.held && !host[h].waits && COUNT(ROLLING) + COUNT(LOST) < 1)
/* Would a call of this host change anything? */
#define DUE(h) (!host[h].out && ( \
        (!KNOWN(h) && (redis.number > host[h].number || \
                (redis.number == host[h].number && (host[h].other != redis.id || !host[h].waits)) || \
                (redis.number < host[h].number && redis.state != ABORTED))) || \
        (KNOWN(h) && ( \
                (host[h].its == WAITING && (redis.its[h] != WAITING || MAY_TAKE(h)) && redis.state <= HALTED) || \
                (host[h].its == ROLLING && (redis.its[h] <= LOST && redis.its[h] != ROLLING || redis.state == ABORTED)) || \
                (host[h].its >= FAILED && redis.its[h] <= LOST) || \
                redis.its[h] == NOBODY))))

inline learn(h) {
        if
        :: redis.number < host[h].number ->
                /* Redis has lost what this host has seen: that ends what it has. */
                redis.state = ABORTED;
                host[h].gone = true
        :: redis.number == host[h].number && (host[h].other != redis.id || host[h].waits) ->
                host[h].other = redis.id;
                host[h].waits = true;
                host[h].gone = true
        :: else ->
                host[h].number = redis.number;
                host[h].id = redis.id;
                if
                :: host[h].its == ROLLING -> skip
                :: else -> host[h].its = WAITING
                fi
        fi
}

inline speak(h) {
        if
        :: redis.its[h] == NOBODY ->
                redis.its[h] = (redis.state == OVER && host[h].its != ROLLING -> DONE : WAITING)
        :: else
        fi;
        if
        :: host[h].its == WAITING && redis.its[h] == WAITING && !MAY_TAKE(h) -> skip
        :: host[h].its == WAITING && (redis.its[h] != WAITING || MAY_TAKE(h)) ->
                if
                :: redis.its[h] >= FAILED -> host[h].its = redis.its[h]
                :: HELD(redis, h) -> redis.its[h] = WAITING
                :: else ->
                        copy(redis, replica);
                        assert(redis.state == RUNNING && KNOWN(h));
                        assert(!BESIDE(0) && !BESIDE(1) && !BESIDE(2));
                        redis.its[h] = ROLLING;
                        start(h)
                fi
        :: host[h].its == ROLLING && redis.state == ABORTED -> ended(h, FAILED); redis.its[h] = FAILED
        :: host[h].its == ROLLING && redis.state != ABORTED ->
                redis.its[h] = ROLLING;
                host[h].gone = false
        :: else -> redis.its[h] = host[h].its
        fi
}

proctype a_host(byte h) {
end:    do
        :: atomic { DUE(h) ->
                replicate_or_not();
                if
                :: !KNOWN(h) -> learn(h)
                :: else -> speak(h)
                fi;
                judge()
        }
        /* Its restart ends, whether Redis can be reached or not: also of one that failed its turn meanwhile. */
        :: atomic { host[h].rolls ->
                if
                :: host[h].its == ROLLING -> ended(h, DONE)
                :: host[h].its == ROLLING && failures > 0 -> failures--; ended(h, FAILED)
                :: host[h].its != ROLLING -> ended(h, host[h].its)
                fi
        }
        :: atomic { host[h].waits && !host[h].out && LEASE_OVER -> host[h].waits = false }
        :: atomic { begins > 0 && !host[h].out ->
                begins--;
                replicate_or_not();
                /* Redis has lost an epoch that this host knows: who rolls for that has a lease to say so. */
                redis.held = redis.held || redis.number < host[h].number;
                redis.number = (redis.number > host[h].number -> redis.number : host[h].number) + 1;
                ids++;
                redis.id = ids;
                redis.state = RUNNING;
                byte i;
                for (i : 0 .. HOSTS - 1) {
                        /* Of a lost turn nobody knows any more. */
                        if
                        :: redis.its[i] == LOST && host[i].rolls && !host[i].undone -> host[i].undone = true; undone++
                        :: else
                        fi;
                        redis.its[i] = (redis.its[i] == ROLLING || redis.its[i] == NOBODY && i != h -> redis.its[i] : WAITING)
                }
                i = 0
        }
        od
}

/* A turn of which Redis knows no more, nor will before another is taken. */
inline undo(h, is_unknown) {
        if
        :: host[h].rolls && (is_unknown) && !host[h].undone -> host[h].undone = true; undone++
        :: else
        fi
}

proctype trouble() {
        byte h;
end:    do
        :: atomic { outages > 0 ->
                outages--;
                select(h : 0 .. HOSTS - 1);
                host[h].out = true;
                host[h].gone = true;
                undo(h, !HELD(redis, h));
                h = 0
        }
        /* An order of somebody who knows, or thinks, that a host is gone for good. */
        :: atomic { forgets > 0 ->
                forgets--;
                select(h : 0 .. HOSTS - 1);
                undo(h, true);
                redis.its[h] = NOBODY;
                host[h].gone = true;
                h = 0;
                judge()
        }
        /* FLUSHALL: what could not be said again before the next turn is taken is nobody's fault but that. */
        :: atomic { flushes > 0 ->
                flushes--;
                for (h : 0 .. HOSTS - 1) {
                        undo(h, host[h].out);
                        redis.its[h] = NOBODY;
                        host[h].gone = true
                }
                h = 0;
                redis.number = 0; redis.id = 0; redis.state = ABORTED; redis.held = false;
                copy(redis, replica)
        }
        :: atomic { redis.held && LEASE_OVER -> redis.held = false }
        /* Its lease runs out. */
        :: atomic {
                if
                :: host[0].out && redis.its[0] == ROLLING -> redis.its[0] = LOST
                :: host[1].out && redis.its[1] == ROLLING -> redis.its[1] = LOST
                :: host[2].out && redis.its[2] == ROLLING -> redis.its[2] = LOST
                fi;
                judge()
        }
        :: atomic {
                if
                :: host[0].out -> host[0].out = false; host[0].waits = true
                :: host[1].out -> host[1].out = false; host[1].waits = true
                :: host[2].out -> host[2].out = false; host[2].waits = true
                fi
        }
        :: atomic { failovers > 0 ->
                failovers--;
                for (h : 0 .. HOSTS - 1) {
                        if
                        :: host[h].rolls && HELD(redis, h) && !HELD(replica, h) && !host[h].undone ->
                                host[h].undone = true; undone++
                        :: else
                        fi;
                        host[h].gone = host[h].gone || host[h].number != replica.number || host[h].id != replica.id;
                        host[h].waits = true
                }
                h = 0;
                copy(replica, redis)
        }
        od
}

/* Where nothing can go on any more, all hosts stand in the newest epoch, and it is over: or what holds it up is told. */
proctype rest() {
end:    timeout ->
        assert(rolling == 0 && !host[0].out && !host[1].out && !host[2].out);
        assert(redis.state != RUNNING);
        assert(redis.state == ABORTED || (KNOWN(0) && KNOWN(1) && KNOWN(2)));
        assert(redis.state != HALTED || COUNT(FAILED) > 0);
        assert(redis.state == ABORTED || COUNT(LOST) == 0);
        /* One that was forgotten may fail once the others are done. */
        assert(redis.state != OVER || COUNT(DONE) + (forgets < FORGETS || flushes < FLUSHES -> COUNT(FAILED) : 0) == HOSTS)
}

/* One more than may is what a failover undid, or an order took from one that nobody could reach. */
active proctype watch() {
end:    atomic { rolling > 1 + undone -> assert(false) }
}

init {
        atomic {
                byte h;
                redis.number = 1; redis.id = 1;
                replica.number = 1; replica.id = 1;
                for (h : 0 .. HOSTS - 1) {
                        host[h].number = 1; host[h].id = 1
                }
                run a_host(0); run a_host(1); run a_host(2);
                run trouble(); run rest()
        }
}
