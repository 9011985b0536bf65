-- SPDX-License-Identifier: MIT
-- No column is unique, so that duplicates are visible.
CREATE TABLE runs (
        id bigserial PRIMARY KEY,
        number integer NOT NULL,
        worker text,
        pid integer NOT NULL,
        loader integer NOT NULL,
        backend integer NOT NULL DEFAULT pg_backend_pid(),
        wrong integer
);
