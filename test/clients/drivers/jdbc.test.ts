import { existsSync } from 'node:fs';
import tap, { test } from 'tap';
import { CUSTOMER_COLUMNS, MANY, missing, startGateway, steps, TABLES } from './support.js';

const gateway = await startGateway();
tap.teardown(() => gateway.close());

const JAR = '/usr/share/java/postgresql.jar';

const PROGRAM = `
import java.sql.*;
import java.util.*;

public class Client {
  static void say(String step, Object value) { System.out.println("{\\"step\\": \\"" + step + "\\", \\"value\\": " + json(value) + "}"); }
  static String json(Object v) {
    if (v instanceof List<?> l) { var s = new StringJoiner(", ", "[", "]"); for (Object e : l) s.add(json(e)); return s.toString(); }
    return v instanceof Number ? v.toString() : "\\"" + v + "\\"";
  }
  static List<Object> column(ResultSet r, String name) throws SQLException {
    var found = new ArrayList<Object>(); while (r.next()) found.add(r.getString(name)); r.close(); return found;
  }
  public static void main(String[] args) throws Exception {
    var e = System.getenv();
    var p = new Properties();
    p.setProperty("user", e.get("OSL_USER")); p.setProperty("password", e.get("OSL_TOKEN"));
    p.setProperty("prepareThreshold", "2");
    var c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + e.get("OSL_PORT") + "/osl", p);
    var m = c.getMetaData();
    say("tables", column(m.getTables(null, "entities", "%", new String[] {"TABLE"}), "TABLE_NAME"));
    say("columns", column(m.getColumns(null, "entities", "customer", "%"), "COLUMN_NAME"));
    say("primary", column(m.getPrimaryKeys(null, "entities", "order"), "COLUMN_NAME"));
    say("foreign", column(m.getImportedKeys(null, "entities", "order"), "PKTABLE_NAME"));
    for (ResultSet r : new ResultSet[] { m.getSchemas(), m.getCatalogs(), m.getTableTypes(), m.getTypeInfo(),
        m.getExportedKeys(null, "entities", "customer"), m.getIndexInfo(null, "entities", "order", false, true),
        m.getBestRowIdentifier(null, "entities", "order", DatabaseMetaData.bestRowSession, false),
        m.getCrossReference(null, "entities", "customer", null, "entities", "order"),
        m.getColumnPrivileges(null, "entities", "customer", "%"), m.getTablePrivileges(null, "entities", "%"),
        m.getProcedures(null, "entities", "%"), m.getFunctions(null, "entities", "%"), m.getUDTs(null, null, "%", null),
        m.getVersionColumns(null, "entities", "order"), m.getClientInfoProperties() }) { while (r.next()); r.close(); }
    say("product", m.getDatabaseProductName());
    var q = c.prepareStatement("select name, email from customer where id = ? and region = ?");
    for (int i = 0; i < 4; i++) {
      q.setInt(1, 1); q.setString(2, "eu");
      var r = q.executeQuery(); r.next();
      say("parameters", List.of(List.of(r.getString(1), r.getString(2)))); r.close();
    }
    c.setAutoCommit(false);
    var s = c.createStatement(); s.setFetchSize(7000);
    var rows = s.executeQuery("select id, amount, placed_at from \\"order\\" where id > 1000");
    int n = 0; while (rows.next()) { rows.getTimestamp(3); n++; }
    say("stream", n); c.commit(); c.setAutoCommit(true);
    var long_ = c.createStatement();
    new Thread(() -> { try { Thread.sleep(700); long_.cancel(); } catch (Exception x) { x.printStackTrace(); } }).start();
    try { long_.executeQuery(e.get("OSL_ENDLESS")); } catch (SQLException x) { say("cancel", x.getSQLState()); }
    try { c.createStatement().executeQuery("select no_such from customer"); } catch (SQLException x) { say("error", x.getSQLState()); }
    try { c.createStatement().executeUpdate("delete from customer"); } catch (SQLException x) { say("write", x.getSQLState()); }
    var one = c.createStatement().executeQuery("select 1"); one.next(); say("after", one.getInt(1));
    say("valid", c.isValid(2) ? 1 : 0);
    c.setReadOnly(true); c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
    c.close();
  }
}
`;

/** HikariCP, whose pool sets what a caller changed back: read-only, isolation, auto-commit, schema. */
const POOL = ['HikariCP', 'slf4j-api', 'slf4j-nop'].map((name) => `/usr/share/java/${name}.jar`);
const POOLED = `
import java.sql.*;
import java.util.*;
import com.zaxxer.hikari.*;

public class Pooled {
  public static void main(String[] args) throws Exception {
    var e = System.getenv();
    var config = new HikariConfig();
    config.setJdbcUrl("jdbc:postgresql://127.0.0.1:" + e.get("OSL_PORT") + "/osl");
    config.setUsername(e.get("OSL_USER")); config.setPassword(e.get("OSL_TOKEN"));
    config.addDataSourceProperty("prepareThreshold", "2");
    config.setMaximumPoolSize(1); config.setReadOnly(true); config.setSchema("entities");
    config.setTransactionIsolation("TRANSACTION_REPEATABLE_READ"); config.setConnectionInitSql("select 1");
    var got = new StringJoiner("\\", \\"", "[\\"", "\\"]");
    try (var pool = new HikariDataSource(config)) {
      for (int turn = 0; turn < 4; turn++) {
        try (var c = pool.getConnection()) {
          c.setReadOnly(turn % 2 == 0); c.setAutoCommit(turn == 3);
          if (turn == 1) c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
          var q = c.prepareStatement("select id from customer where id = ?");
          for (int i = 1; i < 5; i++) { q.setInt(1, i); var r = q.executeQuery(); r.next(); if (i == 4) got.add(r.getString(1)); r.close(); }
          if (turn < 3) {
            var point = c.setSavepoint("here");
            try { c.createStatement().executeQuery("select no_such from customer"); } catch (SQLException x) { got.add(x.getSQLState()); }
            c.rollback(point);
          }
          var r = c.createStatement().executeQuery("show transaction_isolation"); r.next(); got.add(r.getString(1));
          if (turn == 2) c.createStatement().executeQuery("select 1/0");
          if (turn < 3) c.commit();
        } catch (SQLException x) { got.add(x.getSQLState()); }
      }
    }
    System.out.println("{\\"step\\": \\"pool\\", \\"value\\": " + got + "}");
  }
}
`;

const skip = existsSync(JAR)
  ? missing('a Java compiler', ['javac', '-version'])
  : 'pgjdbc is not installed here';

test('pgjdbc', { skip }, async (t) => {
  const command = (file: string) => ['java', '-cp', JAR, file] as const;
  const said = await steps(t, await gateway.environment('user:ann'), {
    file: 'Client.java',
    text: PROGRAM,
    command,
  });
  t.strictSame(Object.fromEntries(said), {
    tables: TABLES,
    columns: CUSTOMER_COLUMNS,
    primary: ['id'],
    foreign: ['customer'],
    product: 'PostgreSQL',
    parameters: [['Ada', '[redacted]']],
    stream: MANY,
    cancel: '57014',
    error: '42703',
    write: '25006',
    after: 1,
    valid: 1,
  });
});

const skipPool =
  skip === false && !POOL.every((jar) => existsSync(jar)) ? 'HikariCP is not installed here' : skip;

test('pgjdbc in a pool of HikariCP', { skip: skipPool }, async (t) => {
  const said = await steps(t, await gateway.environment('user:ann'), {
    file: 'Pooled.java',
    text: POOLED,
    command: (file) => ['java', '-cp', [JAR, ...POOL].join(':'), file],
  });
  const [repeatable, committed] = ['repeatable read', 'read committed'];
  t.strictSame(said.get('pool'), [
    ...['4', '42703', repeatable],
    ...['4', '42703', committed],
    ...['4', '42703', repeatable, '22012'],
    ...['4', repeatable],
  ]);
});
