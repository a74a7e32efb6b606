import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { startBoth } from '../../surfaces/pg/support.js';
import { missing, run } from './support.js';

/** A JVM tells its own time zone when it connects, and expects dates of it: what it reads is what Postgres gives it. */

const JAR = '/usr/share/java/postgresql.jar';
const both = await startBoth();
tap.setTimeout(600_000);
tap.teardown(() => both?.close());

const PROGRAM = `
import java.sql.*;
import java.time.*;
import java.util.*;

public class Zone {
  public static void main(String[] args) throws Exception {
    var e = System.getenv();
    var p = new Properties();
    p.setProperty("user", e.get("PGUSER"));
    if (e.get("PGPASSWORD") != null) p.setProperty("password", e.get("PGPASSWORD"));
    p.setProperty("prepareThreshold", "2");
    if (e.get("OSL_SCHEMA") != null) p.setProperty("currentSchema", e.get("OSL_SCHEMA"));
    var c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + e.get("PGPORT") + "/" + e.get("PGDATABASE"), p);
    var z = c.createStatement().executeQuery("show timezone"); z.next(); System.out.println(z.getString(1));
    var q = c.prepareStatement("select id, placed_at, placed_at::date, placed_at::text, date_trunc('day', placed_at) " +
      "from \\"order\\" where placed_at >= ? and placed_at <> ? order by id limit 3");
    for (int i = 0; i < 4; i++) { // in text, then in binary
      q.setTimestamp(1, Timestamp.valueOf("2026-01-01 00:30:00"));
      q.setObject(2, OffsetDateTime.of(2026, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC));
      var r = q.executeQuery();
      while (r.next()) System.out.println(r.getInt(1) + " " + r.getTimestamp(2) + " " + r.getDate(3) + " " + r.getString(4)
        + " " + r.getObject(5, OffsetDateTime.class) + " " + r.getString(2));
    }
    var w = c.prepareStatement("select date_trunc('day', ?::timestamptz), (?::timestamptz)::text, to_char(?::timestamptz, 'HH24:MI TZ')");
    for (int i = 0; i < 4; i++) { // without a table
      for (int p1 = 1; p1 <= 3; p1++) w.setObject(p1, OffsetDateTime.of(2024, 7, 1, 20, 0, 0, 0, ZoneOffset.UTC));
      var r = w.executeQuery();
      while (r.next()) System.out.println(r.getObject(1, OffsetDateTime.class) + " " + r.getTimestamp(1) + " " + r.getString(2) + " " + r.getString(3));
    }
    c.close();
  }
}`;

const skip =
  both === null
    ? 'no native Postgres to compare with'
    : existsSync(JAR)
      ? missing('java', ['java', '--version'])
      : 'pgjdbc is not installed here';

for (const zone of ['Europe/Berlin', 'America/St_Johns']) {
  test(`pgjdbc in ${zone}`, { skip }, async (t) => {
    if (both === null) return;
    const dir = mkdtempSync(join(tmpdir(), 'osl-jdbc-zone-'));
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    const file = join(dir, 'Zone.java');
    writeFileSync(file, PROGRAM);
    const args = [`-Duser.timezone=${zone}`, '-cp', JAR, file];
    const [ours, theirs] = await Promise.all([
      run(await both.gateway('user:ada'), 'java', args),
      run({ ...both.direct, PGOPTIONS: '', OSL_SCHEMA: 'entities' }, 'java', args),
    ]);
    t.equal(ours.out, theirs.out, ours.err);
    t.equal(ours.out.split('\n')[0], zone);
    t.equal(ours.out.trim().split('\n').length, 17);
  });
}
