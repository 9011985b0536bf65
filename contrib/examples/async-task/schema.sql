-- SPDX-License-Identifier: MIT
CREATE TABLE tasks (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  jobs integer NOT NULL CHECK (jobs > 0),
  -- The class of the job that runs when all others have ended; null once it is enqueued.
  last text,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE events (
  jid text PRIMARY KEY,
  task_id bigint NOT NULL REFERENCES tasks,
  class text NOT NULL,
  args jsonb NOT NULL,
  state text NOT NULL DEFAULT 'enqueue' CHECK (state IN ('enqueue', 'working', 'finish', 'failed', 'error')),
  attempt integer NOT NULL DEFAULT 0,
  pid integer,
  -- True for an error that Sidekiq does not retry again.
  gave_up boolean NOT NULL DEFAULT false,
  final boolean NOT NULL GENERATED ALWAYS AS (state IN ('finish', 'failed') OR gave_up) STORED,
  messages text[] NOT NULL DEFAULT '{}',
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Time since which Redis has no job of the event; valid only if later than the last change.
  missed_at timestamptz,
  swept integer NOT NULL DEFAULT 0
);
CREATE INDEX ON events (task_id);
CREATE INDEX ON events (jid) WHERE NOT final;

-- All state changes of events, with their time. A trigger writes them, so that no code can omit one.
CREATE TABLE transitions (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  jid text NOT NULL,
  before text,
  state text NOT NULL,
  attempt integer NOT NULL,
  gave_up boolean NOT NULL,
  pid integer,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON transitions (jid);

CREATE FUNCTION record_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO transitions (jid, before, state, attempt, gave_up, pid)
  VALUES (NEW.jid, CASE TG_OP WHEN 'UPDATE' THEN OLD.state END, NEW.state, NEW.attempt, NEW.gave_up, NEW.pid);
  RETURN NULL;
END $$;
CREATE TRIGGER event_is_new AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION record_transition();
CREATE TRIGGER event_has_changed AFTER UPDATE ON events FOR EACH ROW
  WHEN ((OLD.state, OLD.attempt, OLD.gave_up) IS DISTINCT FROM (NEW.state, NEW.attempt, NEW.gave_up))
  EXECUTE FUNCTION record_transition();

-- Results of the jobs. No key forbids duplicates, because it would hide errors.
CREATE TABLE deliveries (jid text NOT NULL, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE lines (task_id bigint NOT NULL, number integer NOT NULL, line text NOT NULL);
