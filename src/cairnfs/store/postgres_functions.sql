-- The functions of a namespace on PostgreSQL.
--
-- They belong to the schema's version: formatting makes them, and every migration makes
-- them anew, so that NameNodes of one schema version always call the same ones.
--
-- Sessions forbid sequential scans and hash joins and force generic plans (see
-- postgres_connections.py): all statements here are short lists of keys against
-- indexes, also while the planner has no statistics yet.  Lists are unnested side by side
-- in a SELECT list, not in FROM, which would store each of them first (a third slower).

-- Raise CF001 if a version that was read is not the current one.
CREATE FUNCTION cairn_check_reads(
    read_t integer[], read_a bigint[], read_b bytea[], read_since bigint[])
RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    changed integer[];
BEGIN
    SELECT array_agg(u.n) INTO changed
        FROM (SELECT unnest(read_t), unnest(read_a), unnest(read_b), unnest(read_since),
                     generate_series(1, cardinality(read_t))) u (t, a, b, since, n)
        LEFT JOIN records r ON r.t = u.t AND r.a = u.a AND r.b = u.b
        WHERE coalesce(r.since, 0) <> u.since;
    IF changed IS NOT NULL THEN
        RAISE EXCEPTION 'rows have changed' USING ERRCODE = 'CF001',
            DETAIL = json_build_object('reads', changed);
    END IF;
END $$;


-- Raise CF001 if a prefix is not empty or a directory's counter is beyond its bound.
CREATE FUNCTION cairn_check_outcome(
    empty_t integer[], empty_a bigint[],
    bound_id bigint[], bound_count integer[], bound_limit bigint[])
RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    occupied bigint[];
    exceeded bigint[];
BEGIN
    IF empty_t IS NOT NULL THEN
        SELECT array_agg(u.a) INTO occupied FROM unnest(empty_t, empty_a) u (t, a)
            WHERE EXISTS (SELECT FROM records r WHERE r.t = u.t AND r.a = u.a);
    END IF;
    IF bound_id IS NOT NULL THEN
        SELECT array_agg(u.id) INTO exceeded
            FROM unnest(bound_id, bound_count, bound_limit) u (id, count, most)
            WHERE u.most < (
                SELECT coalesce(sum((ARRAY[
                    children, files, directories, symlinks, length_bytes, space_bytes,
                    ssd_bytes, disk_bytes, archive_bytes, provided_bytes, nvdimm_bytes,
                    inodes, snapshots, reserved_bytes])[u.count + 1]), 0)
                FROM totals WHERE totals.id = u.id);
    END IF;
    IF occupied IS NOT NULL OR exceeded IS NOT NULL THEN
        RAISE EXCEPTION 'directories have changed' USING ERRCODE = 'CF001',
            DETAIL = json_build_object('directories', occupied || exceeded);
    END IF;
END $$;


-- Validate without changing anything.  STABLE: every statement sees the same moment,
-- and no lock is needed.  Returns the TxID of that moment.
CREATE FUNCTION cairn_check(
    member_id integer, member_epoch bigint,
    read_t integer[], read_a bigint[], read_b bytea[], read_since bigint[],
    empty_t integer[], empty_a bigint[],
    bound_id bigint[], bound_count integer[], bound_limit bigint[])
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF member_id IS NOT NULL THEN
        PERFORM FROM members WHERE id = member_id AND epoch = member_epoch;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'member % was replaced', member_id USING ERRCODE = 'CF002';
        END IF;
    END IF;
    IF read_t IS NOT NULL THEN
        PERFORM cairn_check_reads(read_t, read_a, read_b, read_since);
    END IF;
    PERFORM cairn_check_outcome(empty_t, empty_a, bound_id, bound_count, bound_limit);
    RETURN (SELECT txid FROM clock WHERE one = 1);
END $$;


-- Validate and apply a batch; store.base.Store.commit says what that means.  An array
-- that would be empty is NULL.
--
-- Locking the clock comes first and orders all commits.  VOLATILE under READ COMMITTED:
-- every statement after it sees whatever was committed before the lock was granted.
CREATE FUNCTION cairn_commit(
    size integer, shard_ integer,
    member_id integer, member_epoch bigint, member_batch bigint,
    read_t integer[], read_a bigint[], read_b bytea[], read_since bigint[],
    keep_t integer[], keep_a bigint[], keep_b bytea[], keep_order integer[],
    keep_holder bigint[],
    delete_t integer[], delete_a bigint[], delete_b bytea[],
    new_t integer[], new_a bigint[], new_b bytea[],
    new_id bigint[], new_order integer[], new_data bytea[],
    set_t integer[], set_a bigint[], set_b bytea[],
    set_id bigint[], set_order integer[], set_data bytea[],
    touch_id bigint[], touch_mtime bigint[], touch_order integer[],
    touch_entries bigint[], touch_space bigint[], touch_covered bigint[],
    drop_id bigint[],
    forget_t integer[], forget_a bigint[], forget_b bytea[], forget_until bigint[],
    rehold_t integer[], rehold_a bigint[], rehold_b bytea[], rehold_until bigint[],
    rehold_holder bigint[],
    reply_client bytea[], reply_calls text[], reply_data bytea[],
    reply_expires bigint,
    empty_t integer[], empty_a bigint[],
    bound_id bigint[], bound_count integer[], bound_limit bigint[])
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    base_ bigint;
    affected bigint;
    culprits bigint[];
BEGIN
    UPDATE clock SET txid = txid + size WHERE one = 1 RETURNING txid - size INTO STRICT base_;

    IF member_id IS NOT NULL THEN
        -- A batch that `settle` has given up is refused too: its number is taken.
        UPDATE members SET batch = member_batch, base = base_, heartbeat = clock_timestamp()
            WHERE id = member_id AND epoch = member_epoch AND batch < member_batch;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'member % was replaced', member_id USING ERRCODE = 'CF002';
        END IF;
    END IF;

    IF read_t IS NOT NULL THEN
        PERFORM cairn_check_reads(read_t, read_a, read_b, read_since);
    END IF;

    IF keep_t IS NOT NULL THEN
        INSERT INTO past (t, a, b, until, since, id, data, holder)
            SELECT r.t, r.a, r.b, base_ + u.o, r.since, r.id, r.data, u.holder
            FROM (SELECT unnest(keep_t), unnest(keep_a), unnest(keep_b), unnest(keep_order),
                         unnest(keep_holder))
                u (t, a, b, o, holder)
            JOIN records r ON r.t = u.t AND r.a = u.a AND r.b = u.b;
    END IF;

    IF delete_t IS NOT NULL THEN
        DELETE FROM records r
            USING (SELECT unnest(delete_t), unnest(delete_a), unnest(delete_b)) u (t, a, b)
            WHERE r.t = u.t AND r.a = u.a AND r.b = u.b;
    END IF;

    IF new_t IS NOT NULL THEN
        INSERT INTO records (t, a, b, id, since, data)
            SELECT u.t, u.a, u.b, nullif(u.id, -1), base_ + u.o, u.data
            FROM (SELECT unnest(new_t), unnest(new_a), unnest(new_b),
                         unnest(new_id), unnest(new_order), unnest(new_data))
                u (t, a, b, id, o, data);
    END IF;

    IF set_t IS NOT NULL THEN
        UPDATE records r SET id = nullif(u.id, -1), since = base_ + u.o, data = u.data
            FROM (SELECT unnest(set_t), unnest(set_a), unnest(set_b),
                         unnest(set_id), unnest(set_order), unnest(set_data))
                u (t, a, b, id, o, data)
            WHERE r.t = u.t AND r.a = u.a AND r.b = u.b;
        GET DIAGNOSTICS affected = ROW_COUNT;
        IF affected < cardinality(set_t) THEN
            SELECT array_agg(u.n) INTO culprits
                FROM unnest(set_t, set_a, set_b) WITH ORDINALITY u (t, a, b, n)
                LEFT JOIN records r ON r.t = u.t AND r.a = u.a AND r.b = u.b
                WHERE r.since IS NULL;
            RAISE EXCEPTION 'rows to replace are gone' USING ERRCODE = 'CF001',
                DETAIL = json_build_object('replaced', culprits);
        END IF;
    END IF;

    IF touch_covered IS NOT NULL THEN
        -- Totals as they were, one row for each shard.
        INSERT INTO past (t, a, b, until, since, id, data, holder)
            SELECT 100, s.id, int4send(s.shard), base_ + 1, s.changed, NULL,
                convert_to(ARRAY[
                    s.mtime_ms, s.touched, s.children, s.files, s.directories, s.symlinks,
                    s.length_bytes, s.space_bytes, s.ssd_bytes, s.disk_bytes, s.archive_bytes,
                    s.provided_bytes, s.nvdimm_bytes, s.inodes, s.snapshots,
                    s.reserved_bytes]::text, 'UTF8'),
                u.covered
            FROM (SELECT unnest(touch_id), unnest(touch_covered), shard_) u (id, covered, shard)
            JOIN totals s ON s.id = u.id AND s.shard = u.shard
            WHERE s.changed <= u.covered;
    END IF;

    IF touch_id IS NOT NULL THEN
        -- Nearly all of them are there already, and updating is cheaper than upserting.
        UPDATE totals AS old SET
            mtime_ms = CASE WHEN u.o > 0 THEN u.mtime_ms ELSE old.mtime_ms END,
            touched = CASE WHEN u.o > 0 THEN base_ + u.o ELSE old.touched END,
            children = old.children + touch_entries[u.n],
            files = old.files + touch_entries[u.n + 1],
            directories = old.directories + touch_entries[u.n + 2],
            symlinks = old.symlinks + touch_entries[u.n + 3],
            inodes = old.inodes + touch_entries[u.n + 4],
            snapshots = old.snapshots + touch_entries[u.n + 5],
            changed = base_ + size,
            length_bytes = old.length_bytes + coalesce(touch_space[u.s], 0),
            space_bytes = old.space_bytes + coalesce(touch_space[u.s + 1], 0),
            ssd_bytes = old.ssd_bytes + coalesce(touch_space[u.s + 2], 0),
            disk_bytes = old.disk_bytes + coalesce(touch_space[u.s + 3], 0),
            archive_bytes = old.archive_bytes + coalesce(touch_space[u.s + 4], 0),
            provided_bytes = old.provided_bytes + coalesce(touch_space[u.s + 5], 0),
            nvdimm_bytes = old.nvdimm_bytes + coalesce(touch_space[u.s + 6], 0),
            reserved_bytes = old.reserved_bytes + coalesce(touch_space[u.s + 7], 0)
        FROM (SELECT unnest(touch_id), unnest(touch_mtime), unnest(touch_order),
                     generate_series(1, 6 * cardinality(touch_id), 6),
                     generate_series(1, 8 * cardinality(touch_id), 8), shard_)
            u (id, mtime_ms, o, n, s, shard)  -- as a column, or the plan begins with it
        WHERE old.id = u.id AND old.shard = u.shard;
        GET DIAGNOSTICS affected = ROW_COUNT;
        IF affected < cardinality(touch_id) THEN
            INSERT INTO totals (
                id, shard, mtime_ms, touched, changed, children, files, directories, symlinks,
                inodes, snapshots, length_bytes, space_bytes, ssd_bytes, disk_bytes, archive_bytes,
                provided_bytes, nvdimm_bytes, reserved_bytes)
            SELECT u.id, shard_, CASE WHEN u.o > 0 THEN u.mtime_ms ELSE 0 END,
                CASE WHEN u.o > 0 THEN base_ + u.o ELSE 0 END, base_ + size,
                touch_entries[u.n], touch_entries[u.n + 1], touch_entries[u.n + 2],
                touch_entries[u.n + 3], touch_entries[u.n + 4], touch_entries[u.n + 5],
                coalesce(touch_space[u.s], 0), coalesce(touch_space[u.s + 1], 0),
                coalesce(touch_space[u.s + 2], 0), coalesce(touch_space[u.s + 3], 0),
                coalesce(touch_space[u.s + 4], 0), coalesce(touch_space[u.s + 5], 0),
                coalesce(touch_space[u.s + 6], 0), coalesce(touch_space[u.s + 7], 0)
            FROM (SELECT unnest(touch_id), unnest(touch_mtime), unnest(touch_order),
                         generate_series(1, 6 * cardinality(touch_id), 6),
                         generate_series(1, 8 * cardinality(touch_id), 8)) u (id, mtime_ms, o, n, s)
            ON CONFLICT DO NOTHING;
        END IF;
    END IF;

    IF drop_id IS NOT NULL THEN
        DELETE FROM totals USING unnest(drop_id) u (id) WHERE totals.id = u.id;
    END IF;

    IF forget_t IS NOT NULL THEN
        DELETE FROM past p
            USING (SELECT unnest(forget_t), unnest(forget_a), unnest(forget_b),
                          unnest(forget_until)) u (t, a, b, until)
            WHERE p.t = u.t AND p.a = u.a AND p.b = u.b AND p.until = u.until;
    END IF;

    IF rehold_t IS NOT NULL THEN
        UPDATE past p SET holder = u.holder
            FROM (SELECT unnest(rehold_t), unnest(rehold_a), unnest(rehold_b),
                         unnest(rehold_until), unnest(rehold_holder)) u (t, a, b, until, holder)
            WHERE p.t = u.t AND p.a = u.a AND p.b = u.b AND p.until = u.until;
    END IF;

    IF reply_client IS NOT NULL THEN
        INSERT INTO replies (client_id, last_call, txid, first_call, expires_ms, calls, data)
            SELECT u.client_id, u.calls[cardinality(u.calls)], base_ + size, u.calls[1],
                reply_expires, u.calls, u.data
            FROM (SELECT unnest(reply_client), unnest(reply_calls)::bigint[], unnest(reply_data))
                u (client_id, calls, data)
            WHERE NOT EXISTS (
                SELECT FROM replies r
                WHERE r.client_id = u.client_id AND r.last_call >= u.calls[1]
                    AND r.first_call <= u.calls[cardinality(u.calls)] AND r.calls && u.calls);
        GET DIAGNOSTICS affected = ROW_COUNT;
        IF affected < cardinality(reply_client) THEN
            SELECT array_agg(u.n) INTO culprits
                FROM unnest(reply_client) WITH ORDINALITY u (client_id, n)
                WHERE NOT EXISTS (
                    SELECT FROM replies r
                    WHERE r.client_id = u.client_id AND r.txid = base_ + size);
            RAISE EXCEPTION 'calls have run before' USING ERRCODE = 'CF001',
                DETAIL = json_build_object('repeated', culprits);
        END IF;
    END IF;

    IF empty_t IS NOT NULL OR bound_id IS NOT NULL THEN
        PERFORM cairn_check_outcome(empty_t, empty_a, bound_id, bound_count, bound_limit);
    END IF;
    RETURN base_;
END $$;


-- Lock rows in the given order: mode 1 FOR SHARE, 2 FOR UPDATE, 0 not at all.  Rows that
-- are not locked are read at the end, when all locks are held.
CREATE FUNCTION cairn_lock(t_ integer[], a_ bigint[], b_ bytea[], mode integer[])
RETURNS TABLE (n integer, since bigint, data bytea) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    FOR i IN 1 .. cardinality(t_) LOOP
        CONTINUE WHEN mode[i] = 0;
        LOOP
            IF mode[i] = 1 THEN
                SELECT r.since, r.data INTO since, data FROM records r
                    WHERE r.t = t_[i] AND r.a = a_[i] AND r.b = b_[i] FOR SHARE;
            ELSE
                SELECT r.since, r.data INTO since, data FROM records r
                    WHERE r.t = t_[i] AND r.a = a_[i] AND r.b = b_[i] FOR UPDATE;
            END IF;
            IF FOUND THEN
                n := i;
                RETURN NEXT;
                EXIT;
            END IF;
            -- Deleted while we waited; but was it also put there anew?
            PERFORM FROM records r WHERE r.t = t_[i] AND r.a = a_[i] AND r.b = b_[i];
            EXIT WHEN NOT FOUND;
        END LOOP;
    END LOOP;
    FOR i IN 1 .. cardinality(t_) LOOP
        CONTINUE WHEN mode[i] <> 0;
        SELECT r.since, r.data INTO since, data FROM records r
            WHERE r.t = t_[i] AND r.a = a_[i] AND r.b = b_[i];
        IF FOUND THEN
            n := i;
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;


-- The outcome of a member's batch: its base, NULL if it did not and never will take
-- place.  The row lock waits for a commit under way; taking the batch's number stops one
-- that still waits for the clock.
CREATE FUNCTION cairn_settle(member_id integer, member_epoch bigint, member_batch bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found_ members%ROWTYPE;
BEGIN
    SELECT * INTO found_ FROM members WHERE id = member_id FOR UPDATE;
    IF NOT FOUND OR found_.epoch <> member_epoch THEN
        RAISE EXCEPTION 'member % was replaced', member_id USING ERRCODE = 'CF002';
    END IF;
    IF found_.batch > member_batch THEN
        RAISE EXCEPTION 'member % has gone on', member_id USING ERRCODE = 'CF003';
    END IF;
    IF found_.batch = member_batch THEN
        RETURN found_.base;
    END IF;
    UPDATE members SET batch = member_batch, base = NULL WHERE id = member_id;
    RETURN NULL;
END $$;


-- Become a member: under the lowest id that is free, in a new epoch, which fences
-- whoever had that id before.  The advisory lock is for those who join at once.
CREATE FUNCTION cairn_join(address_ text, expiry_ interval)
RETURNS TABLE (id_ integer, epoch_ bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(109266183908098);
    FOR id_ IN SELECT m.id FROM members m
        WHERE m.heartbeat + m.expiry < clock_timestamp() ORDER BY m.id
    LOOP
        UPDATE members m SET epoch = m.epoch + 1, batch = 0, base = NULL,
                address = address_, heartbeat = clock_timestamp(), expiry = expiry_
            WHERE m.id = id_ AND m.heartbeat + m.expiry < clock_timestamp()
            RETURNING m.epoch INTO epoch_;
        IF FOUND THEN
            RETURN NEXT;
            RETURN;
        END IF;
    END LOOP;
    SELECT coalesce(max(m.id) + 1, 0) INTO id_ FROM members m;
    epoch_ := 1;
    INSERT INTO members VALUES (id_, epoch_, 0, NULL, address_, clock_timestamp(), expiry_);
    RETURN NEXT;
END $$;


-- Rows of one prefix behind a name as they were after a TxID: current still, or among the past
-- rows; of those that came and went at some time only, if told so.  In windows of so many rows,
-- whether they were there then or not: else each page of a directory that has little of what it
-- had, or has much more now, would be looked for up to the directory's end.
CREATE FUNCTION cairn_scan_past(
    of_t integer, of_a bigint, after bytea, most bigint,
    first bigint, last bigint, txid bigint)
RETURNS TABLE (b bytea, since bigint, data bytea, until bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE
    forever CONSTANT bigint := 9223372036854775807;
    last_name CONSTANT bytea := decode(repeat('ff', 256), 'hex');  -- no name is as long
    all_rows CONSTANT bigint := 1099511627776;  -- so many are looked for up to the end, once
    width bigint := 2 * most + 32;
    window_end bytea;
    taken bigint;
BEGIN
    LOOP
        IF most < all_rows THEN
            SELECT ends.b INTO window_end FROM (
                (SELECT r.b FROM records r WHERE r.t = of_t AND r.a = of_a AND r.b > after
                    ORDER BY r.t, r.a, r.b OFFSET width LIMIT 1)
                UNION ALL
                (SELECT p.b FROM past p WHERE p.t = of_t AND p.a = of_a AND p.b > after
                    ORDER BY p.t, p.a, p.b, p.until OFFSET width LIMIT 1)) ends
                ORDER BY ends.b LIMIT 1;
        END IF;
        RETURN QUERY
            (SELECT r.b, r.since, r.data, 0::bigint FROM records r
                WHERE r.t = of_t AND r.a = of_a AND r.b > after
                    AND r.b <= coalesce(window_end, last_name)
                    AND r.since BETWEEN first AND txid AND last = forever
                ORDER BY r.t, r.a, r.b LIMIT most)
            UNION ALL
            (SELECT p.b, p.since, p.data, p.until FROM past p
                WHERE p.t = of_t AND p.a = of_a AND p.b > after
                    AND p.b <= coalesce(window_end, last_name)
                    AND p.until > txid AND p.until <= last AND p.since BETWEEN first AND txid
                ORDER BY p.t, p.a, p.b, p.until LIMIT most)
            ORDER BY 1 LIMIT most;
        GET DIAGNOSTICS taken = ROW_COUNT;
        most := most - taken;
        EXIT WHEN window_end IS NULL OR most <= 0;
        after := window_end;
        width := 2 * width;
    END LOOP;
END $$;
