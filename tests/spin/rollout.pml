/* SPDX-License-Identifier: MIT */
/* Three hosts take leases through one Redis, of which one failover undoes the last call, or which is emptied, or asked to
 * forget a host, or written to by a forger; tests/check-spin runs it. With KEYED all hosts have a key, and the forger none.
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

/* Numbers beyond are later than the clock of Redis and the slack. */
#define LIMIT  100
#define IDS    40
/* Orders that are given once no more trouble comes: without a key the first may meet what a forger left behind. */
#define FINALS (FORGES == 0 -> 0 : (KEYED -> 1 : 2))

#define RUNNING 0
#define HALTED  1
#define OVER    2
#define ABORTED 3

/* A rollout is its number and its id. */
typedef Keys {
        byte number, id, state, high;
        bool held; /* nobody takes a turn before a lease is over */
        byte its[HOSTS]
};
typedef Host {
        byte number, id;
        byte acted_number, acted_id; /* the newest that it has restarted for */
        byte its;
        bool rolls;  /* its workers are being replaced, whatever Redis thinks */
        bool undone; /* the call that took its turn was */
        bool out;    /* cannot reach Redis */
        bool gone;   /* could not, was forgotten, or Redis had lost its epoch; and has not said since that it rolls */
        bool waits   /* no lease is over since its connection came up */
};

Keys redis, replica;
Host host[HOSTS];
/* The number that was begun, and signed, with each id. */
byte vouched[IDS];
byte latest = 1; /* no number that was begun is later */
byte forges = FORGES, finals = FINALS;
byte ids = 1, failovers = FAILOVERS, begins = BEGINS, outages = OUTAGES, forgets = FORGETS, flushes = FLUSHES, failures = FAILURES;
byte rolling, undone;

#define COUNT(state) ((redis.its[0] == state) + (redis.its[1] == state) + (redis.its[2] == state))
#define HELD(keys, h) (keys.its[h] == ROLLING || keys.its[h] == LOST)
#define NEWER(n, i, m, j) (n > m || (n == m && i > j))
#define BELIEVED(n) (n <= LIMIT -> n : 0)
#define IS_SIGNED (!KEYED || vouched[redis.id] == redis.number)
#define KNOWN(h) (host[h].number == redis.number && host[h].id == redis.id)
/* The host takes that for the newest. */
#define ADOPTABLE(h) (redis.number <= LIMIT && NEWER(redis.number, redis.id, host[h].number, host[h].id) && IS_SIGNED)
/* Redis has lost what it knows. */
#define BEHIND(h) (NEWER(host[h].number, host[h].id, BELIEVED(redis.number), redis.id))
/* Each that rolls and can reach Redis has said so there, unless Redis has lost the epoch that it rolls for. */
#define SAID(h) (!host[h].rolls || host[h].out || redis.its[h] == ROLLING || (!KNOWN(h) && !ADOPTABLE(h)))
/* Nobody begins beside one that rolls for the same epoch, and could say so all the while. */
#define BESIDE(h) (host[h].rolls && !host[h].gone && KNOWN(h))
#define LEASE_OVER (SAID(0) && SAID(1) && SAID(2))

inline copy(from, to) {
        to.number = from.number; to.id = from.id; to.state = from.state; to.held = from.held; to.high = from.high;
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
        /* Once for each, none older than the last, and with a key only what was signed. */
        assert(NEWER(host[h].number, host[h].id, host[h].acted_number, host[h].acted_id));
        assert(!KEYED || vouched[host[h].id] == host[h].number);
        if
        :: FORGES > 0 -> host[h].acted_number = host[h].number; host[h].acted_id = host[h].id
        :: else
        fi;
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
        (!KNOWN(h) && (ADOPTABLE(h) || (BEHIND(h) && redis.state != ABORTED))) || \
        (KNOWN(h) && ( \
                (host[h].its == WAITING && (redis.its[h] != WAITING || MAY_TAKE(h)) && redis.state <= HALTED) || \
                (host[h].its == ROLLING && (redis.its[h] <= LOST && redis.its[h] != ROLLING || redis.state == ABORTED && !KEYED)) || \
                (host[h].its >= FAILED && redis.its[h] <= LOST) || \
                redis.its[h] == NOBODY))))

inline learn(h) {
        if
        :: ADOPTABLE(h) ->
                /* Of the number that it knows: who rolls for the lost one has a lease to say so. */
                host[h].waits = host[h].waits || redis.number == host[h].number;
                host[h].number = redis.number;
                host[h].id = redis.id;
                if
                :: host[h].its == ROLLING -> skip
                :: else -> host[h].its = WAITING
                fi
        :: else ->
                /* Redis has lost what this host has seen: that ends what it has. */
                redis.state = ABORTED;
                redis.high = (FORGES > 0 && host[h].number > redis.high -> host[h].number : redis.high);
                host[h].gone = true
        fi
}

/* The host begins a rollout: one more than it can believe, or the time. */
inline begin(h) {
        byte i, top;

        top = (IS_SIGNED && BELIEVED(redis.number) > host[h].number -> redis.number : host[h].number);
        top = (!KEYED && redis.high > top -> redis.high : top);
        /* Redis has lost a rollout that this host knows, or another one has: who rolls for that has a lease to say so. */
        redis.held = redis.held || (!KNOWN(h) && !ADOPTABLE(h)) || (!KEYED && redis.high > redis.number);
        if
        :: finals == FINALS -> redis.number = top + 1
        :: FORGES > 0 -> redis.number = (top > latest -> top : latest) + 1
        fi;
        latest = (redis.number > latest -> redis.number : latest);
        ids++;
        if
        :: redis.id = ids
        :: redis.id = IDS - 1 - ids
        fi;
        vouched[redis.id] = redis.number;
        redis.state = RUNNING;
        redis.high = 0;
        for (i : 0 .. HOSTS - 1) {
                /* Of a lost lease nobody knows any more. */
                if
                :: redis.its[i] == LOST && host[i].rolls && !host[i].undone -> host[i].undone = true; undone++
                :: else
                fi;
                redis.its[i] = (redis.its[i] == ROLLING || redis.its[i] == NOBODY && i != h -> redis.its[i] : WAITING)
        }
        i = 0; top = 0
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
        /* An abort that is not signed ends nothing. */
        :: host[h].its == ROLLING && redis.state == ABORTED && !KEYED -> ended(h, FAILED); redis.its[h] = FAILED
        :: host[h].its == ROLLING && (redis.state != ABORTED || KEYED) ->
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
                begin(h)
        }
        od
}

/* A lease of which Redis knows no more, nor will before another is taken. */
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
                redis.number = 0; redis.id = 0; redis.state = ABORTED; redis.held = false; redis.high = 0;
                copy(redis, replica)
        }
        /* A writer to Redis: a number that nobody has counted up to, the next one, another id of this one, what was begun
         * before, or that alone which is not signed. All begin anew, for all that Redis knows. */
        :: atomic { forges > 0 ->
                forges--;
                for (h : 0 .. HOSTS - 1) {
                        undo(h, true);
                        redis.its[h] = WAITING;
                        host[h].gone = true
                }
                h = 0;
                redis.held = false;
                if
                :: redis.number = 200; redis.id = IDS / 2
                :: redis.number <= LIMIT -> redis.number = redis.number + 1; redis.id = IDS / 2
                :: redis.number > 0 -> redis.id = IDS / 2
                :: redis.number > 0 -> redis.id = 0
                :: redis.number = 1; redis.id = 1
                :: vouched[2] > 0 -> redis.number = vouched[2]; redis.id = 2
                :: vouched[IDS - 3] > 0 -> redis.number = vouched[IDS - 3]; redis.id = IDS - 3
                /* By the time of the last orders, later numbers can be believed. */
                :: redis.high = LIMIT / 2
                :: skip
                fi;
                redis.state = RUNNING
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

/* Where nothing can go on any more, all hosts stand in the newest rollout, and it is over: or what holds it up is told.
 * After a forger the next order works. */
proctype rest() {
end:    do
        :: timeout ->
                assert(rolling == 0 && !host[0].out && !host[1].out && !host[2].out);
                assert(FORGES > 0 || redis.state != RUNNING);
                assert(FORGES > 0 || redis.state == ABORTED || (KNOWN(0) && KNOWN(1) && KNOWN(2)));
                assert(FORGES > 0 || redis.state != HALTED || COUNT(FAILED) > 0);
                assert(FORGES > 0 || redis.state == ABORTED || COUNT(LOST) == 0);
                /* One that was forgotten may fail once the others are done. */
                assert(FORGES > 0 || redis.state != OVER ||
                        COUNT(DONE) + (forgets < FORGETS || flushes < FLUSHES -> COUNT(FAILED) : 0) == HOSTS);
                if
                :: finals > 0 -> atomic { finals--; begin(0) }
                :: else -> break
                fi
        od;
        assert(FORGES == 0 || (KNOWN(0) && KNOWN(1) && KNOWN(2)));
        assert(FORGES == 0 || redis.state == OVER || (redis.state == HALTED && COUNT(FAILED) > 0))
}

/* One more than may is what a failover undid, or an order took from one that nobody could reach. */
active proctype watch() {
end:    atomic { rolling > 1 + undone -> assert(false) }
}

init {
        atomic {
                byte h;
                vouched[1] = 1;
                redis.number = 1; redis.id = 1;
                replica.number = 1; replica.id = 1;
                for (h : 0 .. HOSTS - 1) {
                        host[h].number = 1; host[h].id = 1
                }
                run a_host(0); run a_host(1); run a_host(2);
                run trouble(); run rest()
        }
}
