/* SPDX-License-Identifier: MIT */
/* A ledger with one slot, the children that claim it, and an sqmgr that may be killed at each step and is started again;
 * tests/check-spin runs it. One worker is wanted, and is stopped once.
 *
 * It models src/continuity/ledger.c, and what starts, stops and adopts a worker by it. Each load, store and
 * compare-and-swap is one step. A child that has not claimed its start outlives the sqmgr that forked it. */

#define FREE     0
#define STARTING 1
#define RUNNING  2

#define NONE 0
/* The start time of a process: any number that is not another's. */
#define START(pid) (pid)

typedef Slot {
        byte state, epoch, owner; /* one word: they change in one step */
        byte start_epoch, start; /* one word */
        bool asked, sent
};
Slot slot;
byte epoch;

typedef Process {
        bool runs;    /* as a worker, which takes jobs */
        bool over;
        byte signals  /* stop signals that it got */
};
Process process[STARTS + 1];
byte running, starts, kills = KILLS;

/* The worker that sqmgr knows: its memory, which is lost with it. */
byte worker;

/* Claims the slot, which had this epoch as it was filled. Child and parent do the same. */
inline claim(its_epoch, its_pid, claimed) {
        atomic {
                if
                :: slot.start_epoch == its_epoch && slot.start == 0 -> slot.start = START(its_pid)
                :: else
                fi
        }
        atomic {
                if
                :: slot.state == STARTING && slot.epoch == its_epoch && slot.owner == 0 ->
                        slot.state = RUNNING;
                        slot.owner = its_pid
                :: else
                fi;
                claimed = (slot.state == RUNNING && slot.epoch == its_epoch && slot.owner == its_pid)
        }
}

inline end_slot() {
        d_step { slot.state = FREE; slot.epoch = 0; slot.owner = 0 }
}

proctype Child(byte its_epoch, its_pid) {
        bool claimed;

        claim(its_epoch, its_pid, claimed);
        atomic {
                if
                :: claimed ->
                        process[its_pid].runs = true;
                        running++;
                        assert(running <= 1)
                :: else -> process[its_pid].over = true
                fi
        }
}

/* A worker ends by itself, or for its stop signal. */
inline end_process(it) {
        if
        :: process[it].runs -> running--
        :: else
        fi;
        process[it].runs = false;
        process[it].over = true
}

#define MAY_BE_KILLED                                                    \
        if                                                               \
        :: kills > 0 -> kills--; worker = NONE; goto takes_over          \
        :: true                                                          \
        fi

active proctype Sqmgr() {
        bool claimed, unconfirmed;

takes_over:
        unconfirmed = false;
        epoch++;
        MAY_BE_KILLED;
        if
        :: slot.state == STARTING ->
                atomic {
                        if
                        :: slot.state == STARTING -> end_slot()
                        :: else
                        fi
                }
        :: else
        fi;
        MAY_BE_KILLED;
        if
        /* A process is the one of the slot if pid and start time are the same. */
        :: slot.state == RUNNING && slot.start == START(slot.owner) && !process[slot.owner].over ->
                worker = slot.owner;
                unconfirmed = (slot.asked && !slot.sent)
        :: slot.state == RUNNING && (slot.start != START(slot.owner) || process[slot.owner].over) -> end_slot()
        :: slot.state != RUNNING
        fi;

        do
        :: worker == NONE && starts < STARTS ->
                starts++;
                d_step { slot.start = 0; slot.start_epoch = epoch }
                slot.asked = false;
                slot.sent = false;
                MAY_BE_KILLED;
                d_step { slot.state = STARTING; slot.epoch = epoch; slot.owner = 0 }
                MAY_BE_KILLED;
                run Child(epoch, starts);
                MAY_BE_KILLED;
                claim(epoch, starts, claimed);
                worker = starts;
                MAY_BE_KILLED
        :: worker != NONE && process[worker].runs && !unconfirmed && !slot.sent ->
                slot.asked = true;
                MAY_BE_KILLED;
                process[worker].signals++;
                assert(process[worker].signals <= 1);
                MAY_BE_KILLED;
                slot.sent = true;
                MAY_BE_KILLED
        :: atomic { worker != NONE && process[worker].runs -> end_process(worker) }
        :: worker != NONE && process[worker].over ->
                end_slot();
                MAY_BE_KILLED;
                worker = NONE
        :: kills > 0 -> MAY_BE_KILLED
        /* Nobody else comes: what runs is known, and recorded as what it is. */
        :: timeout ->
                assert(running == 0 || process[worker].runs);
                break
        od
}
