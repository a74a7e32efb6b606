import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { SHOP_POLICY } from '../../support/shop.js';
import { startBoth } from '../../surfaces/pg/support.js';
import { missing, run } from './support.js';

/**
 * What pgjdbc declares for each of its setters, in text and, from the fifth run on, prepared on the server and in binary
 * form: it ends the connection where another type is described than it declared.
 */

const JAR = '/usr/share/java/postgresql.jar';
const both = await startBoth();
tap.setTimeout(600_000);
tap.teardown(() => both?.close());

const PROGRAM = `
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.util.PGobject;

public class Types {
  interface Step { void run() throws Exception; }
  static void step(String name, Step s) {
    try { s.run(); }
    catch (SQLException x) { System.out.println(name + ": " + x.getSQLState() + " " + x.getMessage().split("\\n")[0]); }
    catch (Exception x) { System.out.println(name + ": " + x); }
  }
  static PGobject object(String type, String value) throws SQLException { var o = new PGobject(); o.setType(type); o.setValue(value); return o; }
  static Connection c;
  interface Set { void on(PreparedStatement q) throws Exception; }
  static void ask(String name, String sql, Set set) {
    step(name, () -> {
      try (var q = c.prepareStatement(sql)) {
        var said = new ArrayList<String>();
        for (int i = 0; i < 7; i++) { // in text first, then prepared on the server and in binary
          set.on(q);
          var r = q.executeQuery(); var rows = new ArrayList<String>();
          while (r.next()) rows.add(r.getString(1));
          r.close(); said.add(rows.toString());
        }
        System.out.println(name + ": " + said.get(0) + " " + new HashSet<>(said).size());
      }
    });
  }
  static void described(String name, String sql, Set set) {
    step(name, () -> {
      try (var q = c.prepareStatement(sql)) {
        set.on(q); var m = q.getParameterMetaData(); var types = new ArrayList<String>();
        for (int i = 1; i <= m.getParameterCount(); i++) types.add(m.getParameterTypeName(i));
        System.out.println(name + ": " + types);
      }
    });
  }
  public static void main(String[] args) throws Exception {
    var e = System.getenv(); var p = new Properties();
    p.setProperty("user", e.get("PGUSER"));
    if (e.get("PGPASSWORD") != null) p.setProperty("password", e.get("PGPASSWORD"));
    p.setProperty("prepareThreshold", "5"); p.setProperty("binaryTransfer", "true");
    if (e.get("OSL_SCHEMA") != null) p.setProperty("currentSchema", e.get("OSL_SCHEMA"));
    c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + e.get("PGPORT") + "/" + e.get("PGDATABASE"), p);
    String two = "select id from \\"order\\" where region = ? and placed_at >= ? order by id limit 3";
    Set both = q -> { q.setString(1, "eu"); q.setTimestamp(2, Timestamp.valueOf("2026-01-01 00:30:00")); };
    ask("setString, setTimestamp", two, both);
    described("what is set is described", two, both);
    described("what is not set is described", two, q -> {});
    ask("setObject", "select name from customer where id = ? and region = ?", q -> { q.setObject(1, 1); q.setObject(2, "eu"); });
    int[] turn = {0};
    ask("another type at each turn", "select name from customer where id = ?", q -> {
      switch (turn[0]++ % 3) { case 0 -> q.setInt(1, 1); case 1 -> q.setLong(1, 1); default -> q.setShort(1, (short) 1); }
    });
    ask("setBigDecimal", "select id from \\"order\\" where amount > ? order by id limit 2", q -> q.setBigDecimal(1, new java.math.BigDecimal("1.25")));
    ask("setDouble", "select id from \\"order\\" where amount > ? order by id limit 2", q -> q.setDouble(1, 1.25));
    ask("setDate", "select id from customer where born > ? order by id", q -> q.setDate(1, java.sql.Date.valueOf("1980-01-01")));
    ask("LocalDate", "select id from customer where born > ? order by id", q -> q.setObject(1, LocalDate.of(1980, 1, 1)));
    ask("OffsetDateTime", "select id from \\"order\\" where placed_at > ? order by id limit 2", q -> q.setObject(1, OffsetDateTime.of(2026, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC)));
    ask("setNull varchar", "select id from customer where region = ?", q -> q.setNull(1, java.sql.Types.VARCHAR));
    ask("setNull char", "select id from customer where region = ?", q -> q.setNull(1, java.sql.Types.CHAR));
    ask("CHAR", "select id from customer where region = ? order by id", q -> q.setObject(1, "eu  ", java.sql.Types.CHAR));
    ask("varchar[]", "select id from customer where region = any(?) order by id", q -> q.setArray(1, c.createArrayOf("varchar", new String[] {"eu", null, "x y"})));
    ask("text[]", "select id from customer where region = any(?) order by id", q -> q.setArray(1, c.createArrayOf("text", new String[] {"eu", null, "x y"})));
    ask("bpchar[]", "select id from customer where region = any(?) order by id", q -> q.setArray(1, c.createArrayOf("bpchar", new String[] {"eu "})));
    ask("int4[]", "select name from customer where id = any(?) order by id", q -> q.setArray(1, c.createArrayOf("int4", new Integer[] {1, 2})));
    ask("int8[]", "select id from \\"order\\" where id = any(?) order by id", q -> q.setArray(1, c.createArrayOf("int8", new Long[] {1L, 2L})));
    ask("int[] as an object", "select name from customer where id = any(?) order by id", q -> q.setObject(1, new int[] {1, 2}));
    ask("uuid", "select ?::text from customer where id = 1", q -> q.setObject(1, UUID.fromString("00112233-4455-6677-8899-aabbccddeeff")));
    ask("json", "select ?::jsonb from customer where id = 1", q -> q.setObject(1, object("json", "{\\"a\\": 1}")));
    ask("jsonb", "select ? from customer where id = 1", q -> q.setObject(1, object("jsonb", "{\\"a\\": 1}")));
    ask("inet", "select ?::text from customer where id = 1", q -> q.setObject(1, object("inet", "10.0.0.1")));
    ask("setTime", "select ?::text from customer where id = 1", q -> q.setTime(1, Time.valueOf("10:20:30")));
    ask("LocalTime", "select ?::text from customer where id = 1", q -> q.setObject(1, LocalTime.of(10, 20, 30)));
    ask("OffsetTime", "select ?::text from customer where id = 1", q -> q.setObject(1, OffsetTime.of(10, 20, 30, 0, ZoneOffset.ofHours(2))));
    ask("bytes", "select ?::text from customer where id = 1", q -> q.setBytes(1, new byte[] {1, 2, 3}));
    ask("boolean", "select id from customer where (id > 1) = ? order by id", q -> q.setBoolean(1, true));
    ask("without a table", "select ? || ?", q -> { q.setString(1, "a"); q.setString(2, "b"); });
    ask("in a catalog", "select relname from pg_class where relname = ? and relkind = ?", q -> { q.setString(1, "pg_class"); q.setString(2, "r"); });
    described("in a catalog, described", "select relname from pg_class where relname = ? and oid = ?", q -> { q.setString(1, "pg_class"); q.setLong(2, 1); });
    ask("the connection lives", "select id from customer where id = 1", q -> {});
    ask("inet alone", "select id from customer where ? is null", q -> q.setObject(1, object("inet", "10.0.0.1")));
    ask("the connection lives on", "select id from customer where id = 1", q -> {});
    c.close();
  }
}`;

const skip =
  both === null
    ? 'no native Postgres to compare with'
    : existsSync(JAR)
      ? missing('java', ['java', '--version'])
      : 'pgjdbc is not installed here';

test('pgjdbc is told the types that it declares', { skip }, async (t) => {
  if (both === null) return;
  const dir = mkdtempSync(join(tmpdir(), 'osl-jdbc-types-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'Types.java');
  writeFileSync(file, PROGRAM);
  const [ours, theirs] = await Promise.all([
    run(await both.gateway('user:ada'), 'java', ['-cp', JAR, file]),
    run({ ...both.direct, PGOPTIONS: '', OSL_SCHEMA: 'entities' }, 'java', ['-cp', JAR, file]),
  ]);
  const [mine, real] = [ours, theirs].map(({ out }) => out.trim().split('\n'));
  t.equal(real?.length, 34, theirs.err);
  t.same(mine, real, ours.err);
  const wrong = real?.filter((line) => /^(?!.* described).*[^1]$/.test(line));
  t.same(wrong, [], 'each run of a statement gives the same rows');
});

const RELOADED = `
import java.sql.*;

public class Reloaded {
  public static void main(String[] args) throws Exception {
    var e = System.getenv();
    var c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + e.get("PGPORT") + "/osl", e.get("PGUSER"), e.get("PGPASSWORD"));
    var q = c.prepareStatement("select * from customer where id = 1");
    for (int i = 0; i < 8; i++) q.executeQuery().close();
    System.out.println("ready");
    System.in.read();
    var r = q.executeQuery(); r.next();
    System.out.println(r.getMetaData().getColumnCount() + " " + r.getString("name"));
    c.close();
  }
}`;

test('pgjdbc prepares a statement again whose columns have changed', { skip }, async (t) => {
  if (both === null) return;
  const dir = mkdtempSync(join(tmpdir(), 'osl-jdbc-reloaded-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'Reloaded.java');
  writeFileSync(file, RELOADED);
  const child = spawn('java', ['-cp', JAR, file], { env: await both.gateway('user:ada') });
  let said = '';
  const ended = new Promise((resolve) => child.once('close', resolve));
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  child.stdout.on('data', (chunk) => {
    said += chunk;
    if (said.endsWith('ready\n')) void narrow().then(() => child.stdin.write('\n'));
  });
  const narrow = async (): Promise<void> => {
    writeFileSync(
      both.shop.policyFile,
      SHOP_POLICY.replaceAll('on: customer, columns: "*"', 'on: customer, columns: [id, name]'),
    );
    await both.shop.open.reload();
  };
  await ended;
  t.equal(said, 'ready\n2 Ada\n');
});
